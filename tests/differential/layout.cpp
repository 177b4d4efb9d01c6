#include "tests/differential/layout.h"

#include <array>
#include <utility>
#include <vector>

namespace plait::test {
namespace {

struct Made {
  MPI_Datatype type;
  std::size_t elements;
  const char* name;
};

MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(type, &lower_bound, &extent);
  return extent;
}

// `type`, resized; frees it.
MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower_bound, MPI_Aint extent) {
  MPI_Datatype result = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(type, lower_bound, extent, &result);
  MPI_Type_free(&type);
  return result;
}

MPI_Datatype vector_of(MPI_Datatype basic, int blocks, int length, int stride) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(blocks, length, stride, basic, &type);
  return type;
}

MPI_Datatype indexed_of(MPI_Datatype basic, std::vector<int> lengths, std::vector<int> displacements) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_indexed(static_cast<int>(lengths.size()), lengths.data(), displacements.data(), basic, &type);
  return type;
}

Made duplicate(MPI_Datatype basic, std::size_t) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_dup(basic, &type);
  return {type, 1, "duplicate"};
}

Made contiguous(MPI_Datatype basic, std::size_t) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(3, basic, &type);
  return {type, 3, "contiguous"};
}

Made vector(MPI_Datatype basic, std::size_t) { return {vector_of(basic, 2, 2, 3), 4, "vector"}; }

Made spaced_vector(MPI_Datatype basic, std::size_t) {
  return {resized(vector_of(basic, 3, 1, 2), 0, 6 * extent_of(basic)), 3, "vector with a gap behind"};
}

Made backward_vector(MPI_Datatype basic, std::size_t) { return {vector_of(basic, 3, 1, -2), 3, "backward vector"}; }

Made indexed(MPI_Datatype basic, std::size_t) {
  return {indexed_of(basic, {2, 1, 3}, {4, 0, 7}), 6, "indexed out of order"};
}

// No gaps, and yet not the packed form.
Made swapped(MPI_Datatype basic, std::size_t) { return {indexed_of(basic, {1, 1}, {1, 0}), 2, "swapped"}; }

Made unaligned_struct(MPI_Datatype basic, std::size_t) {
  const MPI_Aint extent = extent_of(basic);
  const std::array<int, 2> lengths = {1, 2};
  const std::array<MPI_Aint, 2> displacements = {0, 2 * extent + 1};
  const std::array<MPI_Datatype, 2> types = {basic, basic};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(2, lengths.data(), displacements.data(), types.data(), &type);
  return {resized(type, 0, 5 * extent + 3), 3, "unaligned struct"};
}

Made negative_lower_bound(MPI_Datatype basic, std::size_t) {
  const MPI_Aint extent = extent_of(basic);
  return {resized(indexed_of(basic, {1, 1}, {-2, 1}), -2 * extent, 5 * extent), 2, "negative lower bound"};
}

// The columns of a matrix: elements of one column lie between those of all others.
Made column(MPI_Datatype basic, std::size_t columns) {
  const int stride = static_cast<int>(columns == 0 ? 1 : columns);
  return {resized(vector_of(basic, 4, 1, stride), 0, extent_of(basic)), 4, "column"};
}

Made nested(MPI_Datatype basic, std::size_t) {
  MPI_Datatype inner = vector_of(basic, 2, 1, 2), type = MPI_DATATYPE_NULL;
  MPI_Type_create_hvector(3, 1, 4 * extent_of(basic), inner, &type);
  MPI_Type_free(&inner);
  return {type, 6, "nested vectors"};
}

constexpr std::array makers = {duplicate, contiguous, vector,           spaced_vector,        backward_vector,
                               indexed,   swapped,    unaligned_struct, negative_lower_bound, column,
                               nested};

}  // namespace

Layout::Layout(MPI_Datatype type, std::size_t elements, std::string name, bool owned)
    : type_(type), elements_(elements), name_(std::move(name)), owned_(owned) {
  int size = 0;
  MPI_Aint lower_bound = 0;
  MPI_Type_size(type_, &size);
  MPI_Type_get_extent(type_, &lower_bound, &extent_);
  MPI_Type_get_true_extent(type_, &true_lower_bound_, &true_extent_);
  size_ = static_cast<std::size_t>(size);
}

Layout::Layout(Layout&& other) noexcept
    : type_(other.type_),
      elements_(other.elements_),
      name_(std::move(other.name_)),
      owned_(std::exchange(other.owned_, false)),
      size_(other.size_),
      extent_(other.extent_),
      true_lower_bound_(other.true_lower_bound_),
      true_extent_(other.true_extent_) {}

Layout::~Layout() {
  if (owned_) MPI_Type_free(&type_);
}

Layout Layout::borrowed(MPI_Datatype type) { return {type, 1, "plain", false}; }

Layout Layout::derived(MPI_Datatype basic, std::size_t columns, Random& random) {
  Made made = makers[random.below(makers.size())](basic, columns);
  MPI_Type_commit(&made.type);
  return {made.type, made.elements, made.name, true};
}

MixedTypes::MixedTypes() {
  struct Place {
    std::array<MPI_Aint, 3> displacements;
    MPI_Aint extent;
  };
  constexpr std::array<Place, count> places = {{
      {{0, 8, 16}, 24},  // as a C struct
      {{0, 4, 12}, 13},  // packed
      {{12, 4, 0}, 17},  // in reverse
  }};
  const std::array<int, 3> lengths = {1, 1, 1};
  const std::array<MPI_Datatype, 3> members = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  for (std::size_t i = 0; i < count; ++i) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(3, lengths.data(), places[i].displacements.data(), members.data(), &type);
    types_[i] = resized(type, 0, places[i].extent);
    MPI_Type_commit(&types_[i]);
  }
}

MixedTypes::~MixedTypes() {
  for (MPI_Datatype& type : types_) MPI_Type_free(&type);
}

}  // namespace plait::test
