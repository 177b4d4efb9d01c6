#include "tests/differential/basic.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/differential/user_operators.h"

namespace plait::test {
namespace {

// ---- Values ----

// Fills arrays of T with value(random, family); through memcpy, as buffers are not always aligned.
template <class T, class Value>
void fill_each(std::byte* to, std::size_t count, Value&& value) {
  for (std::size_t i = 0; i < count; ++i) {
    const T element = value();
    std::memcpy(to + i * sizeof(T), &element, sizeof(T));
  }
}

// Wrap-around makes sums and products of any integers independent of the order. Logical operators want zeros as well.
template <class T>
void fill_integers(std::byte* to, std::size_t count, Family family, Random& random) {
  if (family == Family::logical)
    fill_each<T>(to, count, [&] { return static_cast<T>(random.between(0, 2)); });
  else
    fill_each<T>(to, count, [&] { return static_cast<T>(random.next()); });
}

template <class T>
void fill_truths(std::byte* to, std::size_t count, Family, Random& random) {
  fill_each<T>(to, count, [&] { return static_cast<T>(random.between(0, 1)); });
}

double power_of_two(Random& random) {
  constexpr std::array values = {0.5, 1.0, 2.0, -0.5, -1.0, -2.0};
  return values[random.below(values.size())];
}

// Small whole numbers for sums, powers of two for products. Never -0, which equals +0 in a comparison but not in bits.
double real_value(Family family, Random& random) {
  if (family == Family::sum) return random.between(-8, 8);
  if (family == Family::prod) return power_of_two(random);
  return random.between(-4000, 4000) / 8.0;
}

template <class T>
void store_value(std::byte* to, T value) {
  // x87's long double has 10 bytes of value and 6 of padding, which must keep their canaries.
  constexpr std::size_t bytes = std::is_same_v<T, long double> && sizeof(T) == 16 ? 10 : sizeof(T);
  std::memcpy(to, &value, bytes);
}

template <class T>
void fill_reals(std::byte* to, std::size_t count, Family family, Random& random) {
  for (std::size_t i = 0; i < count; ++i) store_value(to + i * sizeof(T), static_cast<T>(real_value(family, random)));
}

// Factors are (2+i) times powers of two: no power of 2+i has a zero component, whose sign would depend on the order.
template <class T>
void fill_complex(std::byte* to, std::size_t count, Family family, Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* element = to + i * 2 * sizeof(T);
    const double scale = power_of_two(random);
    const bool product = family == Family::prod;
    store_value(element, static_cast<T>(product ? 2 * scale : real_value(Family::sum, random)));
    store_value(element + sizeof(T), static_cast<T>(product ? scale : real_value(Family::sum, random)));
  }
}

template <class V, class I>
struct Pair {
  V value;
  I index;
};
template <class V, class I>
constexpr std::size_t index_offset = (sizeof(V) + alignof(I) - 1) / alignof(I) * alignof(I);

// Few different values, so that there are ties for the index to break.
template <class V, class I>
void fill_pairs(std::byte* to, std::size_t count, Family, Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* element = to + i * sizeof(Pair<V, I>);
    store_value(element, static_cast<V>(random.between(-3, 3)));
    store_value(element + index_offset<V, I>, static_cast<I>(random.between(0, 99)));
  }
}

// ---- Which bytes hold a value ----

void mark(std::vector<bool>& bytes, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes[first + i] = true;
}

template <class T>
constexpr std::size_t value_size = std::is_same_v<T, long double> && sizeof(T) == 16 ? 10 : sizeof(T);

template <class T, std::size_t parts>
std::vector<bool> value_bytes() {
  std::vector<bool> bytes(sizeof(T) * parts);
  for (std::size_t part = 0; part < parts; ++part) mark(bytes, part * sizeof(T), value_size<T>);
  return bytes;
}

template <class V, class I>
std::vector<bool> pair_value_bytes() {
  std::vector<bool> bytes(sizeof(Pair<V, I>));
  mark(bytes, 0, value_size<V>);
  mark(bytes, index_offset<V, I>, value_size<I>);
  return bytes;
}

// ---- Tables ----

constexpr unsigned bit(Family family) { return 1u << static_cast<unsigned>(family); }
constexpr unsigned arithmetic = bit(Family::sum) | bit(Family::prod);

// The families that MPI 3.1 defines for a class of types (section 5.9.2).
constexpr unsigned c_integer = arithmetic | bit(Family::order) | bit(Family::logical) | bit(Family::bitwise);
constexpr unsigned fortran_integer = arithmetic | bit(Family::order) | bit(Family::bitwise);
constexpr unsigned floating = arithmetic | bit(Family::order);
constexpr unsigned complex = arithmetic;
constexpr unsigned logical = bit(Family::logical);
constexpr unsigned bitwise = bit(Family::bitwise);
constexpr unsigned location = bit(Family::location);
constexpr unsigned nothing = 0;

struct Row {
  const char* name;
  MPI_Datatype handle;
  unsigned defined;
  Basic::Fill fill = nullptr;
  std::vector<bool> (*value_bytes)() = nullptr;  // as in Basic; none: all
};

#define PLAIT_TYPE(handle, ...) \
  { #handle, handle, __VA_ARGS__ }

std::vector<Row> c_rows() {
  return {
      PLAIT_TYPE(MPI_CHAR, nothing, fill_integers<signed char>),
      PLAIT_TYPE(MPI_WCHAR, nothing),
      PLAIT_TYPE(MPI_PACKED, nothing),
      PLAIT_TYPE(MPI_BYTE, bitwise, fill_integers<unsigned char>),
      PLAIT_TYPE(MPI_SIGNED_CHAR, c_integer, fill_integers<signed char>),
      PLAIT_TYPE(MPI_UNSIGNED_CHAR, c_integer, fill_integers<unsigned char>),
      PLAIT_TYPE(MPI_SHORT, c_integer, fill_integers<short>),
      PLAIT_TYPE(MPI_UNSIGNED_SHORT, c_integer, fill_integers<unsigned short>),
      PLAIT_TYPE(MPI_INT, c_integer, fill_integers<int>),
      PLAIT_TYPE(MPI_UNSIGNED, c_integer, fill_integers<unsigned>),
      PLAIT_TYPE(MPI_LONG, c_integer, fill_integers<long>),
      PLAIT_TYPE(MPI_UNSIGNED_LONG, c_integer, fill_integers<unsigned long>),
      PLAIT_TYPE(MPI_LONG_LONG, c_integer, fill_integers<long long>),
      PLAIT_TYPE(MPI_UNSIGNED_LONG_LONG, c_integer, fill_integers<unsigned long long>),
      PLAIT_TYPE(MPI_INT8_T, c_integer, fill_integers<std::int8_t>),
      PLAIT_TYPE(MPI_INT16_T, c_integer, fill_integers<std::int16_t>),
      PLAIT_TYPE(MPI_INT32_T, c_integer, fill_integers<std::int32_t>),
      PLAIT_TYPE(MPI_INT64_T, c_integer, fill_integers<std::int64_t>),
      PLAIT_TYPE(MPI_UINT8_T, c_integer, fill_integers<std::uint8_t>),
      PLAIT_TYPE(MPI_UINT16_T, c_integer, fill_integers<std::uint16_t>),
      PLAIT_TYPE(MPI_UINT32_T, c_integer, fill_integers<std::uint32_t>),
      PLAIT_TYPE(MPI_UINT64_T, c_integer, fill_integers<std::uint64_t>),
      PLAIT_TYPE(MPI_AINT, c_integer, fill_integers<MPI_Aint>),
      PLAIT_TYPE(MPI_OFFSET, c_integer, fill_integers<MPI_Offset>),
      PLAIT_TYPE(MPI_COUNT, c_integer, fill_integers<MPI_Count>),
      PLAIT_TYPE(MPI_FLOAT, floating, fill_reals<float>),
      PLAIT_TYPE(MPI_DOUBLE, floating, fill_reals<double>),
      PLAIT_TYPE(MPI_LONG_DOUBLE, floating, fill_reals<long double>, value_bytes<long double, 1>),
      PLAIT_TYPE(MPI_C_BOOL, logical, fill_truths<bool>),
      PLAIT_TYPE(MPI_CXX_BOOL, logical, fill_truths<bool>),
      PLAIT_TYPE(MPI_C_FLOAT_COMPLEX, complex, fill_complex<float>),
      PLAIT_TYPE(MPI_C_DOUBLE_COMPLEX, complex, fill_complex<double>),
      PLAIT_TYPE(MPI_C_LONG_DOUBLE_COMPLEX, complex, fill_complex<long double>, value_bytes<long double, 2>),
      PLAIT_TYPE(MPI_CXX_FLOAT_COMPLEX, complex, fill_complex<float>),
      PLAIT_TYPE(MPI_CXX_DOUBLE_COMPLEX, complex, fill_complex<double>),
      PLAIT_TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX, complex, fill_complex<long double>, value_bytes<long double, 2>),
      PLAIT_TYPE(MPI_FLOAT_INT, location, fill_pairs<float, int>),
      PLAIT_TYPE(MPI_DOUBLE_INT, location, fill_pairs<double, int>, pair_value_bytes<double, int>),
      PLAIT_TYPE(MPI_LONG_INT, location, fill_pairs<long, int>, pair_value_bytes<long, int>),
      PLAIT_TYPE(MPI_2INT, location, fill_pairs<int, int>),
      PLAIT_TYPE(MPI_SHORT_INT, location, fill_pairs<short, int>, pair_value_bytes<short, int>),
      PLAIT_TYPE(MPI_LONG_DOUBLE_INT, location, fill_pairs<long double, int>, pair_value_bytes<long double, int>),
  };
}

std::vector<Row> fortran_rows() {
  return {
      PLAIT_TYPE(MPI_CHARACTER, nothing),
      PLAIT_TYPE(MPI_INTEGER, fortran_integer, fill_integers<std::int32_t>),
      PLAIT_TYPE(MPI_REAL, floating, fill_reals<float>),
      PLAIT_TYPE(MPI_DOUBLE_PRECISION, floating, fill_reals<double>),
      PLAIT_TYPE(MPI_LOGICAL, logical, fill_truths<std::int32_t>),
      PLAIT_TYPE(MPI_COMPLEX, complex, fill_complex<float>),
      PLAIT_TYPE(MPI_DOUBLE_COMPLEX, complex, fill_complex<double>),
      PLAIT_TYPE(MPI_2INTEGER, location, fill_pairs<std::int32_t, std::int32_t>),
      PLAIT_TYPE(MPI_2REAL, location, fill_pairs<float, float>),
      PLAIT_TYPE(MPI_2DOUBLE_PRECISION, location, fill_pairs<double, double>),
#ifdef MPI_2COMPLEX  // Open MPI's
      PLAIT_TYPE(MPI_2COMPLEX, nothing),
      PLAIT_TYPE(MPI_2DOUBLE_COMPLEX, nothing),
#endif
  };
}

// mpi.h has these only where the host's Fortran compiler has them.
std::vector<Row> sized_fortran_rows() {
  return {
#ifdef MPI_INTEGER1
      PLAIT_TYPE(MPI_INTEGER1, fortran_integer, fill_integers<std::int8_t>),
#endif
#ifdef MPI_INTEGER2
      PLAIT_TYPE(MPI_INTEGER2, fortran_integer, fill_integers<std::int16_t>),
#endif
#ifdef MPI_INTEGER4
      PLAIT_TYPE(MPI_INTEGER4, fortran_integer, fill_integers<std::int32_t>),
#endif
#ifdef MPI_INTEGER8
      PLAIT_TYPE(MPI_INTEGER8, fortran_integer, fill_integers<std::int64_t>),
#endif
#ifdef MPI_REAL4
      PLAIT_TYPE(MPI_REAL4, floating, fill_reals<float>),
#endif
#ifdef MPI_REAL8
      PLAIT_TYPE(MPI_REAL8, floating, fill_reals<double>),
#endif
#ifdef MPI_REAL16
      PLAIT_TYPE(MPI_REAL16, floating, fill_reals<__float128>),
#endif
#ifdef MPI_COMPLEX8
      PLAIT_TYPE(MPI_COMPLEX8, complex, fill_complex<float>),
#endif
#ifdef MPI_COMPLEX16
      PLAIT_TYPE(MPI_COMPLEX16, complex, fill_complex<double>),
#endif
#ifdef MPI_COMPLEX32
      PLAIT_TYPE(MPI_COMPLEX32, complex, fill_complex<__float128>),
#endif
#ifdef MPI_LOGICAL1
      PLAIT_TYPE(MPI_LOGICAL1, logical, fill_truths<std::int8_t>),
#endif
#ifdef MPI_LOGICAL2
      PLAIT_TYPE(MPI_LOGICAL2, logical, fill_truths<std::int16_t>),
#endif
#ifdef MPI_LOGICAL4
      PLAIT_TYPE(MPI_LOGICAL4, logical, fill_truths<std::int32_t>),
#endif
#ifdef MPI_LOGICAL8
      PLAIT_TYPE(MPI_LOGICAL8, logical, fill_truths<std::int64_t>),
#endif
  };
}

#undef PLAIT_TYPE

std::vector<Operator> predefined_operators() {
  return {{"MPI_SUM", MPI_SUM, Family::sum},
          {"MPI_PROD", MPI_PROD, Family::prod},
          {"MPI_MAX", MPI_MAX, Family::order},
          {"MPI_MIN", MPI_MIN, Family::order},
          {"MPI_LAND", MPI_LAND, Family::logical},
          {"MPI_LOR", MPI_LOR, Family::logical},
          {"MPI_LXOR", MPI_LXOR, Family::logical},
          {"MPI_BAND", MPI_BAND, Family::bitwise},
          {"MPI_BOR", MPI_BOR, Family::bitwise},
          {"MPI_BXOR", MPI_BXOR, Family::bitwise},
          {"MPI_MAXLOC", MPI_MAXLOC, Family::location},
          {"MPI_MINLOC", MPI_MINLOC, Family::location}};
}

// The host checks the arguments of a reduction of no elements as well.
bool host_accepts(MPI_Datatype type, MPI_Op op) {
  std::array<char, 64> left{}, right{};
  return PMPI_Reduce_local(left.data(), right.data(), 0, type, op) == MPI_SUCCESS;
}

std::vector<Operator> accepted_operators(const Row& row) {
  std::vector<Operator> accepted;
  if (row.fill == nullptr) return accepted;
  for (Operator op : predefined_operators()) {
    if (!host_accepts(row.handle, op.handle)) continue;
    op.corrected = corrected_operator(row.name, op.name);
    op.required = (row.defined & bit(op.family)) != 0;
#ifdef MPICH_VERSION  // which ends the job where it has no function for an operator after all
    if (!op.required) continue;
#endif
    // Neither MPI nor the host says what the result is.
    if (!op.required && op.corrected != MPI_OP_NULL) continue;
    accepted.push_back(op);
  }
  return accepted;
}

// The host's loops may use vector instructions that need the natural alignment of 16-byte elements; smaller ones go
// through instructions that need none.
std::size_t needed_alignment(const Row& row, std::size_t extent) {
  const bool wide = row.fill == fill_reals<__float128> || row.fill == fill_complex<__float128>;
  return wide ? 16 : row.defined == location || row.defined == complex ? 8 : extent < 8 ? extent : 8;
}

void append(std::vector<Basic>& basics, const Row& row) {
  int size = 0;
  MPI_Aint lower_bound = 0, extent = 0;
  if (row.handle == MPI_DATATYPE_NULL) return;
  MPI_Type_size(row.handle, &size);
  MPI_Type_get_extent(row.handle, &lower_bound, &extent);
  if (size == 0) return;  // a name without a type behind it
  const auto bytes = static_cast<std::size_t>(extent);
  basics.push_back({.name = row.name,
                    .handle = row.handle,
                    .size = static_cast<std::size_t>(size),
                    .extent = bytes,
                    .fill = row.fill,
                    .value_bytes = row.value_bytes != nullptr ? row.value_bytes() : std::vector<bool>(),
                    .alignment = needed_alignment(row, bytes),
                    .operators = accepted_operators(row),
                    .dense = MPI_DATATYPE_NULL});
}

}  // namespace

std::vector<Basic> make_basics() {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<Basic> basics;
  for (const auto& rows : {c_rows(), fortran_rows(), sized_fortran_rows()})
    for (const Row& row : rows) append(basics, row);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  MPI_Errhandler_free(&before);
  append_user_basics(basics);
  return basics;
}

void free_basics(std::vector<Basic>& basics) {
  free_user_basics();
  basics.clear();
}

}  // namespace plait::test
