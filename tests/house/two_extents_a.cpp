// With two_extents_b.cpp: two types of one name, which the test of one_definition finds.
namespace plait {
struct Extent {
  int first, second;
  int sum() const { return first + second; }
};
int sum_of_ints(const Extent& extent) { return extent.sum(); }
}  // namespace plait
