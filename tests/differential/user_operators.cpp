#include "tests/differential/user_operators.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace plait::test {
namespace {

// ---- 2x2 matrices modulo 2^32: associative, not commutative, and the same bits in any grouping ----

using Matrix = std::array<std::uint32_t, 4>;

// Where a type keeps a matrix's four numbers, and how far the next matrix is.
struct Place {
  std::array<MPI_Aint, 4> offset;
  MPI_Aint lower_bound, extent;
};
constexpr std::array<Place, 3> places = {{
    {{0, 4, 8, 12}, 0, 16},        // dense
    {{20, 0, 8, 28}, 0, 40},       // out of order, with gaps
    {{-16, 8, -8, 0}, -20, 36},    // around its address
}};
constexpr std::array<const char*, 3> place_names = {"matrix", "matrix with gaps", "matrix with negative lower bound"};
std::array<MPI_Datatype, 3> matrix_types;

const Place& place_of(MPI_Datatype type) {
  for (std::size_t i = 0; i < places.size(); ++i)
    if (matrix_types[i] == type) return places[i];
  std::fprintf(stderr, "differential: a user-defined operator was called with a type that is not its own\n");
  std::abort();
}

Matrix load(const std::byte* from, const Place& place) {
  Matrix matrix;
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(&matrix[i], from + place.offset[i], 4);
  return matrix;
}

void store(std::byte* to, const Place& place, const Matrix& matrix) {
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(to + place.offset[i], &matrix[i], 4);
}

Matrix product(const Matrix& a, const Matrix& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};
}

Matrix sum(const Matrix& a, const Matrix& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}; }

template <Matrix (*combine)(const Matrix&, const Matrix&)>
void combine_matrices(void* left, void* right, int* count, MPI_Datatype* type) {
  const Place& place = place_of(*type);
  for (int i = 0; i < *count; ++i) {
    const auto* a = static_cast<const std::byte*>(left) + place.extent * i;
    auto* b = static_cast<std::byte*>(right) + place.extent * i;
    store(b, place, combine(load(a, place), load(b, place)));
  }
}

MPI_Datatype make_matrix_type(const Place& place) {
  MPI_Datatype numbers = MPI_DATATYPE_NULL, type = MPI_DATATYPE_NULL;
  const std::array<int, 4> lengths = {1, 1, 1, 1};
  MPI_Type_create_hindexed(4, lengths.data(), place.offset.data(), MPI_UINT32_T, &numbers);
  MPI_Type_create_resized(numbers, place.lower_bound, place.extent, &type);
  MPI_Type_free(&numbers);
  MPI_Type_commit(&type);
  return type;
}

// ---- x -> ax + b modulo 2^32, both numbers in one predefined element: composition does not commute ----

void compose(void* left, void* right, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    std::array<std::uint32_t, 2> first, second;
    std::memcpy(first.data(), static_cast<std::byte*>(left) + 8 * i, 8);
    std::memcpy(second.data(), static_cast<std::byte*>(right) + 8 * i, 8);
    second = {first[0] * second[0], first[1] * second[0] + second[1]};
    std::memcpy(static_cast<std::byte*>(right) + 8 * i, second.data(), 8);
  }
}

MPI_Op matrix_product = MPI_OP_NULL, matrix_sum = MPI_OP_NULL, composition = MPI_OP_NULL;

}  // namespace

void append_user_basics(std::vector<Basic>& basics) {
  MPI_Op_create(combine_matrices<product>, 0, &matrix_product);
  MPI_Op_create(combine_matrices<sum>, 1, &matrix_sum);
  MPI_Op_create(compose, 0, &composition);
  const std::vector<Operator> matrix_operators = {{"matrix product", matrix_product, Family::user},
                                                  {"matrix sum", matrix_sum, Family::user}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    matrix_types[i] = make_matrix_type(places[i]);
    basics.push_back({.name = place_names[i],
                      .handle = matrix_types[i],
                      .size = 16,
                      .extent = static_cast<std::size_t>(places[i].extent),
                      .value_bytes = {},
                      .operators = matrix_operators,
                      .dense = i > 0 ? matrix_types[0] : MPI_DATATYPE_NULL});
  }
  basics.push_back({.name = "MPI_UINT64_T as affine map",
                    .handle = MPI_UINT64_T,
                    .size = 8,
                    .extent = 8,
                    .value_bytes = {},
                    .operators = {{"composition", composition, Family::user}},
                    .dense = MPI_DATATYPE_NULL});
}

void free_user_basics() {
  for (MPI_Op* op : {&matrix_product, &matrix_sum, &composition}) MPI_Op_free(op);
  for (MPI_Datatype& type : matrix_types) MPI_Type_free(&type);
}

}  // namespace plait::test
