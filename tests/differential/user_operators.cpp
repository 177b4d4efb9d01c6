#include "tests/differential/user_operators.h"

#include <algorithm>
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
    {{0, 4, 8, 12}, 0, 16},      // dense
    {{20, 0, 8, 28}, 0, 40},     // out of order, with gaps
    {{-16, 8, -8, 0}, -20, 36},  // around its address
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

// ---- Predefined operators as they should be ----

template <class T, T (*combine)(T, T)>
void combine_each(void* left, void* right, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    T a, b;
    std::memcpy(&a, static_cast<std::byte*>(left) + sizeof(T) * i, sizeof(T));
    std::byte* to = static_cast<std::byte*>(right) + sizeof(T) * i;
    std::memcpy(&b, to, sizeof(T));
    b = combine(a, b);
    std::memcpy(to, &b, sizeof(T));
  }
}

template <class T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T multiply(T a, T b) {
  return static_cast<T>(a * b);
}
template <class T>
T larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a < b ? a : b;
}

using Quad = __float128;
struct QuadComplex {
  Quad real, imaginary;
};
QuadComplex add_complex(QuadComplex a, QuadComplex b) { return {a.real + b.real, a.imaginary + b.imaginary}; }
QuadComplex multiply_complex(QuadComplex a, QuadComplex b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

struct Correction {
  std::vector<std::string> types;
  const char* op;
  MPI_User_function* function;
};

#ifdef MPICH_VERSION
template <class T>
void correct_order(std::vector<Correction>& table, const std::vector<std::string>& types) {
  table.push_back({types, "MPI_MAX", combine_each<T, larger>});
  table.push_back({types, "MPI_MIN", combine_each<T, smaller>});
}

std::vector<Correction> corrections_of_mpich() {
  std::vector<Correction> table;
  correct_order<std::uint8_t>(table, {"MPI_UNSIGNED_CHAR", "MPI_UINT8_T"});
  correct_order<std::uint16_t>(table, {"MPI_UNSIGNED_SHORT", "MPI_UINT16_T"});
  correct_order<std::uint32_t>(table, {"MPI_UNSIGNED", "MPI_UINT32_T"});
  correct_order<std::uint64_t>(table, {"MPI_UNSIGNED_LONG", "MPI_UNSIGNED_LONG_LONG", "MPI_UINT64_T"});
  table.push_back({{"MPI_COMPLEX32"}, "MPI_SUM", combine_each<QuadComplex, add_complex>});
  table.push_back({{"MPI_COMPLEX32"}, "MPI_PROD", combine_each<QuadComplex, multiply_complex>});
  table.push_back({{"MPI_REAL16"}, "MPI_SUM", combine_each<Quad, add>});
  table.push_back({{"MPI_REAL16"}, "MPI_PROD", combine_each<Quad, multiply>});
  correct_order<Quad>(table, {"MPI_REAL16"});
  return table;
}
#endif

const std::vector<Correction>& corrections() {
#ifdef MPICH_VERSION
  static const std::vector<Correction> table = corrections_of_mpich();
#else
  static const std::vector<Correction> table = {
      {{"MPI_CHAR", "MPI_SIGNED_CHAR", "MPI_INT8_T", "MPI_INTEGER1", "MPI_BYTE", "MPI_UNSIGNED_CHAR", "MPI_UINT8_T"},
       "MPI_SUM",
       combine_each<std::uint8_t, add>},
      {{"MPI_SHORT", "MPI_INT16_T", "MPI_INTEGER2", "MPI_UNSIGNED_SHORT", "MPI_UINT16_T"},
       "MPI_SUM",
       combine_each<std::uint16_t, add>},
      {{"MPI_UNSIGNED_LONG"}, "MPI_MAX", combine_each<unsigned long, larger>},
      {{"MPI_UNSIGNED_LONG"}, "MPI_MIN", combine_each<unsigned long, smaller>},
      {{"MPI_OFFSET"}, "MPI_MAX", combine_each<MPI_Offset, larger>},
      {{"MPI_OFFSET"}, "MPI_MIN", combine_each<MPI_Offset, smaller>},
      {{"MPI_REAL16"}, "MPI_SUM", combine_each<Quad, add>},
      {{"MPI_REAL16"}, "MPI_PROD", combine_each<Quad, multiply>},
      {{"MPI_REAL16"}, "MPI_MAX", combine_each<Quad, larger>},
      {{"MPI_REAL16"}, "MPI_MIN", combine_each<Quad, smaller>},
      {{"MPI_COMPLEX32"}, "MPI_SUM", combine_each<QuadComplex, add_complex>},
      {{"MPI_COMPLEX32"}, "MPI_PROD", combine_each<QuadComplex, multiply_complex>}};
#endif
  return table;
}

std::vector<MPI_Op> corrected;  // by correction; made at their first use

}  // namespace

MPI_Op corrected_operator(const std::string& type, const std::string& op) {
  corrected.resize(corrections().size(), MPI_OP_NULL);
  for (std::size_t i = 0; i < corrected.size(); ++i) {
    const Correction& correction = corrections()[i];
    if (op != correction.op || std::ranges::find(correction.types, type) == correction.types.end()) continue;
    if (corrected[i] == MPI_OP_NULL) MPI_Op_create(correction.function, 1, &corrected[i]);
    return corrected[i];
  }
  return MPI_OP_NULL;
}

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
  for (MPI_Op& op : corrected)
    if (op != MPI_OP_NULL) MPI_Op_free(&op);
  for (MPI_Datatype& type : matrix_types) MPI_Type_free(&type);
}

}  // namespace plait::test
