namespace plait {
struct Extent {
  double first, second;
  double sum() const { return first + second; }
};
double sum_of_doubles(const Extent& extent) { return extent.sum(); }
}  // namespace plait
