// Kernels as plain loops: for the types no vector unit computes with (long double, __float128,
// their complexes, the pairs of maxloc and minloc), and the complex products for processors without
// vectors. Operands may have any alignment, so all access goes through packed structs; only the
// bytes of a value are ever written, so padding in the result (in x87's long double, in pairs)
// keeps what it held.
#include <cstddef>
#include <cstdint>

#include "core/kernels.h"

namespace plait::detail {
namespace {

#ifdef __SIZEOF_FLOAT128__
using Quad = __float128;
#else  // where the compiler has no __float128, long double is the 128-bit format
using Quad = long double;
#endif

template <class T>
struct __attribute__((packed, may_alias)) Unaligned {
  T value;
};

template <class T>
T read(const std::byte* from) {
  return reinterpret_cast<const Unaligned<T>*>(from)->value;
}

template <class T>
void write(std::byte* to, T value) {
  reinterpret_cast<Unaligned<T>*>(to)->value = value;
}

struct Sum {
  template <class T>
  static T apply(T left, T right) {
    return left + right;
  }
};
struct Prod {
  template <class T>
  static T apply(T left, T right) {
    return left * right;
  }
};
struct Max {
  template <class T>
  static T apply(T left, T right) {
    return left > right ? left : right;
  }
};
struct Min {
  template <class T>
  static T apply(T left, T right) {
    return left < right ? left : right;
  }
};

// An element is `Values` numbers, each by itself: how complex numbers are added.
template <class Operator, class T, std::size_t Values = 1>
void each(void* result, const void* left, const void* right, std::size_t count) {
  auto* to = static_cast<std::byte*>(result);
  const auto* from_left = static_cast<const std::byte*>(left);
  const auto* from_right = static_cast<const std::byte*>(right);
  for (std::size_t i = 0; i < count * Values; ++i) {
    const std::size_t offset = i * sizeof(T);
    write<T>(to + offset, Operator::apply(read<T>(from_left + offset), read<T>(from_right + offset)));
  }
}

// The plain formula, as for the narrower complexes in kernels.cpp.
template <class T>
void complex_prod(void* result, const void* left, const void* right, std::size_t count) {
  auto* to = static_cast<std::byte*>(result);
  const auto* from_left = static_cast<const std::byte*>(left);
  const auto* from_right = static_cast<const std::byte*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t re = 2 * i * sizeof(T);
    const std::size_t im = re + sizeof(T);
    const T left_re = read<T>(from_left + re), left_im = read<T>(from_left + im);
    const T right_re = read<T>(from_right + re), right_im = read<T>(from_right + im);
    write<T>(to + re, left_re * right_re - left_im * right_im);
    write<T>(to + im, left_re * right_im + left_im * right_re);
  }
}

template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

// Always one of the two operands, whole: the one with the better value; of equal values the smaller
// index; the right one where a NaN makes them unordered.
template <class Better, class Value, class Index>
void locate(void* result, const void* left, const void* right, std::size_t count) {
  using Layout = Pair<Value, Index>;
  static constexpr std::size_t index_offset = offsetof(Layout, index);
  auto* to = static_cast<std::byte*>(result);
  const auto* from_left = static_cast<const std::byte*>(left);
  const auto* from_right = static_cast<const std::byte*>(right);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t offset = i * sizeof(Layout);
    const auto left_value = read<Value>(from_left + offset);
    const auto right_value = read<Value>(from_right + offset);
    const auto left_index = read<Index>(from_left + offset + index_offset);
    const auto right_index = read<Index>(from_right + offset + index_offset);
    // Not && and ||: which side wins is not predictable, so no branches.
    const bool take_left =
        static_cast<bool>(static_cast<int>(Better::of(left_value, right_value)) |
                          (static_cast<int>(left_value == right_value) & static_cast<int>(left_index < right_index)));
    write<Value>(to + offset, take_left ? left_value : right_value);
    write<Index>(to + offset + index_offset, take_left ? left_index : right_index);
  }
}

struct Greater {
  template <class T>
  static bool of(T left, T right) {
    return left > right;
  }
};
struct Less {
  template <class T>
  static bool of(T left, T right) {
    return left < right;
  }
};

template <class T>
void add_floating(KernelTable& table, Element real, Element complex) {
  table.at(Op::sum, real) = each<Sum, T>;
  table.at(Op::prod, real) = each<Prod, T>;
  table.at(Op::max, real) = each<Max, T>;
  table.at(Op::min, real) = each<Min, T>;
  table.at(Op::sum, complex) = each<Sum, T, 2>;
  table.at(Op::prod, complex) = complex_prod<T>;
}

template <class Value, class Index>
void add_pair(KernelTable& table, Element element) {
  table.at(Op::maxloc, element) = locate<Greater, Value, Index>;
  table.at(Op::minloc, element) = locate<Less, Value, Index>;
}

}  // namespace

void add_scalar_kernels(KernelTable& table) {
  add_floating<long double>(table, Element::f80, Element::c80);
  add_floating<Quad>(table, Element::f128, Element::c128);
  table.at(Op::prod, Element::c32) = complex_prod<float>;
  table.at(Op::prod, Element::c64) = complex_prod<double>;
  add_pair<float, std::int32_t>(table, Element::pair_f32_i32);
  add_pair<double, std::int32_t>(table, Element::pair_f64_i32);
  add_pair<std::int64_t, std::int32_t>(table, Element::pair_i64_i32);
  add_pair<std::int32_t, std::int32_t>(table, Element::pair_i32_i32);
  add_pair<std::int16_t, std::int32_t>(table, Element::pair_i16_i32);
  add_pair<long double, std::int32_t>(table, Element::pair_f80_i32);
  add_pair<float, float>(table, Element::pair_f32_f32);
  add_pair<double, double>(table, Element::pair_f64_f64);
}

}  // namespace plait::detail
