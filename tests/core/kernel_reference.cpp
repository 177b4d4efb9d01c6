#include "tests/core/kernel_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace plait::test {
namespace {

using Quad = __float128;

// The bytes that hold the value: x87's 80 bits stand in 16 bytes.
constexpr std::size_t long_double_bytes = std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);
template <class T>
constexpr std::size_t value_bytes = std::is_same_v<T, long double> ? long_double_bytes : sizeof(T);

template <class T>
T get(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, value_bytes<T>);
  return value;
}

template <class T>
void put(std::byte* to, const T& value) {
  std::memcpy(to, &value, value_bytes<T>);
}

// All NaNs alike: which one a sum of two NaNs is, nobody promises.
template <class T>
T with_one_nan(T value) {
  const bool is_nan = value != value;  // NOLINT(misc-redundant-expression): isnan has no __float128
  return is_nan ? static_cast<T>(std::numeric_limits<double>::quiet_NaN()) : value;
}

template <class T>
T integer_result(Op op, T left, T right) {
  // Wide enough to hold the low bits of any result; a negative byte is meant to extend its sign.
  const auto a = static_cast<std::uint64_t>(left);   // NOLINT(bugprone-signed-char-misuse)
  const auto b = static_cast<std::uint64_t>(right);  // NOLINT(bugprone-signed-char-misuse)
  switch (op) {
    case Op::max:
      return left < right ? right : left;
    case Op::min:
      return right < left ? right : left;
    case Op::sum:
      return static_cast<T>(a + b);
    case Op::prod:
      return static_cast<T>(a * b);
    case Op::band:
      return static_cast<T>(a & b);
    case Op::bor:
      return static_cast<T>(a | b);
    case Op::bxor:
      return static_cast<T>(a ^ b);
    case Op::land:
      return left != 0 && right != 0 ? 1 : 0;
    case Op::lor:
      return left != 0 || right != 0 ? 1 : 0;
    case Op::lxor:
      return (left != 0) != (right != 0) ? 1 : 0;
    default:
      break;
  }
  ADD_FAILURE() << "no reference for " << name(op);
  return {};
}

template <class T>
T floating_result(Op op, T left, T right) {
  switch (op) {
    case Op::max:
      return left > right ? left : right;
    case Op::min:
      return left < right ? left : right;
    case Op::sum:
      return with_one_nan<T>(left + right);
    case Op::prod:
      return with_one_nan<T>(left * right);
    default:
      break;
  }
  ADD_FAILURE() << "no reference for " << name(op);
  return {};
}

template <class T>
struct Real {
  static constexpr std::size_t extent_bytes = sizeof(T);
  static void combine(const Step& step) {
    const T left = get<T>(step.left);
    const T right = get<T>(step.right);
    if constexpr (std::is_integral_v<T>) {
      put(step.result, integer_result<T>(step.op, left, right));
    } else {
      put(step.result, floating_result<T>(step.op, left, right));
    }
  }
  static void normalise(std::byte* element) {
    if constexpr (!std::is_integral_v<T>) put(element, with_one_nan(get<T>(element)));
  }
  static void clear_padding(std::byte* element) {
    const T value = get<T>(element);
    std::memset(element, 0, extent_bytes);
    put(element, value);
  }
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.template value<T>());
  }
};

// Of 16 bits, by exact arithmetic: a double holds every sum and product of two f16 exactly, and of two bf16 with so
// many bits to spare that rounding twice is rounding once.
template <int fraction_bits>
struct ShortReal {
  static constexpr std::size_t extent_bytes = 2;
  static constexpr int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr unsigned most_exponent = (1u << exponent_bits) - 1, fractions = 1u << fraction_bits;

  static double value(std::uint16_t bits) {
    const unsigned exponent = bits >> fraction_bits & most_exponent, fraction = bits & (fractions - 1);
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == most_exponent)
      return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    const unsigned whole = exponent != 0 ? fractions + fraction : fraction;
    return sign * std::ldexp(whole, static_cast<int>(std::max(exponent, 1u)) - bias - fraction_bits);
  }
  static std::uint16_t rounded(double value) {
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    const auto bits = [&](unsigned magnitude) { return static_cast<std::uint16_t>(sign | magnitude); };
    const unsigned infinity = most_exponent << fraction_bits;
    if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | fractions / 2);
    if (std::isinf(value)) return bits(infinity);
    int power = 0;
    std::frexp(value, &power);
    const int exponent = std::max(power - 1 + bias, 1);
    const auto whole =
        static_cast<unsigned>(std::nearbyint(std::ldexp(std::fabs(value), fraction_bits + bias - exponent)));
    if (value == 0) return bits(0);
    return bits(std::min((static_cast<unsigned>(exponent - 1) << fraction_bits) + whole, infinity));
  }
  static void combine(const Step& step) {
    const auto left_bits = get<std::uint16_t>(step.left), right_bits = get<std::uint16_t>(step.right);
    const double left = value(left_bits), right = value(right_bits);
    if (step.op == Op::max || step.op == Op::min)
      return put(step.result, (step.op == Op::max ? left > right : left < right) ? left_bits : right_bits);
    put(step.result, rounded(floating_result<double>(step.op, left, right)));
  }
  static void normalise(std::byte* element) { put(element, rounded(value(get<std::uint16_t>(element)))); }
  static void clear_padding(std::byte*) {}
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.below(2) == 0 ? draw.template value<std::uint16_t>() : rounded(draw.template value<double>()));
  }
};

template <class T>
struct Complex {
  static constexpr std::size_t extent_bytes = 2 * sizeof(T);
  static void combine(const Step& step) {
    const T a = get<T>(step.left), b = get<T>(step.left + sizeof(T));
    const T c = get<T>(step.right), d = get<T>(step.right + sizeof(T));
    const bool sum = step.op == Op::sum;
    put(step.result, with_one_nan<T>(sum ? a + c : a * c - b * d));
    put(step.result + sizeof(T), with_one_nan<T>(sum ? b + d : a * d + b * c));
  }
  static void normalise(std::byte* element) {
    Real<T>::normalise(element);
    Real<T>::normalise(element + sizeof(T));
  }
  static void clear_padding(std::byte* element) {
    Real<T>::clear_padding(element);
    Real<T>::clear_padding(element + sizeof(T));
  }
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.template value<T>());
    put(element + sizeof(T), draw.template value<T>());
  }
};

template <class Value, class Index>
struct Pair {
  struct Layout {
    Value value;
    Index index;
  };
  static constexpr std::size_t extent_bytes = sizeof(Layout);
  static constexpr std::size_t index_offset = offsetof(Layout, index);
  static void combine(const Step& step) {
    const auto left = get<Value>(step.left);
    const auto right = get<Value>(step.right);
    const auto left_index = get<Index>(step.left + index_offset);
    const auto right_index = get<Index>(step.right + index_offset);
    bool take_left = false;
    if (left == right) {
      take_left = left_index < right_index;
    } else {
      take_left = step.op == Op::maxloc ? left > right : left < right;
    }
    put(step.result, take_left ? left : right);
    put(step.result + index_offset, take_left ? left_index : right_index);
  }
  static void normalise(std::byte*) {}  // one operand, unchanged
  static void clear_padding(std::byte* element) {
    const auto value = get<Value>(element);
    const auto index = get<Index>(element + index_offset);
    std::memset(element, 0, extent_bytes);
    put(element, value);
    put(element + index_offset, index);
  }
  template <class Draw>
  static void fill(std::byte* element, Draw&& draw) {
    put(element, draw.template tied<Value>());
    put(element + index_offset, draw.template tied<Index>());
  }
};

// ---- Operands: mostly the values where something can go wrong ----

struct Drawing {
  Random& random;
  bool truth_only;  // C's bool holds 0 and 1, nothing else

  std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); }

  template <class T>
  T value() {
    if constexpr (std::is_integral_v<T>) {
      if (truth_only) return static_cast<T>(below(2));
      const std::array<T, 6> special = {
          0, 0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
      return below(3) == 0 ? special[below(special.size())] : static_cast<T>(random());
    } else {
      using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Quad>, double, T>>;
      const std::array<T, 11> special = {0,
                                         -T{0},
                                         1,
                                         static_cast<T>(Limits::denorm_min()),
                                         static_cast<T>(-Limits::denorm_min()),
                                         static_cast<T>(Limits::min()),
                                         static_cast<T>(Limits::max()),
                                         static_cast<T>(Limits::lowest()),
                                         static_cast<T>(Limits::infinity()),
                                         static_cast<T>(-Limits::infinity()),
                                         static_cast<T>(Limits::quiet_NaN())};
      if (below(3) == 0) return special[below(special.size())];
      return static_cast<T>(std::normal_distribution<double>(0, 100)(random)) / static_cast<T>(3);
    }
  }

  // Few distinct values, so that ties are frequent.
  template <class T>
  T tied() {
    if (below(8) == 0) return value<T>();
    return static_cast<T>(static_cast<int>(below(5)) - 2);
  }
};

template <class Type>
constexpr Reference reference_of() {
  return {Type::extent_bytes, Type::combine, Type::normalise, Type::clear_padding,
          [](std::byte* element, Random& random, bool truth_only) {
            Type::fill(element, Drawing{random, truth_only});
          }};
}

}  // namespace

Reference reference(Element element) {
  switch (element) {
    case Element::i8:
      return reference_of<Real<std::int8_t>>();
    case Element::i16:
      return reference_of<Real<std::int16_t>>();
    case Element::i32:
      return reference_of<Real<std::int32_t>>();
    case Element::i64:
      return reference_of<Real<std::int64_t>>();
    case Element::u8:
    case Element::bool8:
    case Element::logical8:
    case Element::byte8:
      return reference_of<Real<std::uint8_t>>();
    case Element::u16:
    case Element::logical16:
      return reference_of<Real<std::uint16_t>>();
    case Element::u32:
    case Element::logical32:
      return reference_of<Real<std::uint32_t>>();
    case Element::u64:
    case Element::logical64:
      return reference_of<Real<std::uint64_t>>();
    case Element::f16:
      return reference_of<ShortReal<10>>();
    case Element::bf16:
      return reference_of<ShortReal<7>>();
    case Element::f32:
      return reference_of<Real<float>>();
    case Element::f64:
      return reference_of<Real<double>>();
    case Element::f80:
      return reference_of<Real<long double>>();
    case Element::f128:
      return reference_of<Real<Quad>>();
    case Element::c32:
      return reference_of<Complex<float>>();
    case Element::c64:
      return reference_of<Complex<double>>();
    case Element::c80:
      return reference_of<Complex<long double>>();
    case Element::c128:
      return reference_of<Complex<Quad>>();
    case Element::pair_f32_i32:
      return reference_of<Pair<float, std::int32_t>>();
    case Element::pair_f64_i32:
      return reference_of<Pair<double, std::int32_t>>();
    case Element::pair_i64_i32:
      return reference_of<Pair<std::int64_t, std::int32_t>>();
    case Element::pair_i32_i32:
      return reference_of<Pair<std::int32_t, std::int32_t>>();
    case Element::pair_i16_i32:
      return reference_of<Pair<std::int16_t, std::int32_t>>();
    case Element::pair_f80_i32:
      return reference_of<Pair<long double, std::int32_t>>();
    case Element::pair_f32_f32:
      return reference_of<Pair<float, float>>();
    case Element::pair_f64_f64:
      return reference_of<Pair<double, double>>();
    case Element::count_:
      break;
  }
  return {};
}

Bytes draw_operand(Element element, std::size_t count, Random& random) {
  const Reference type = reference(element);
  Bytes operand(count * type.extent);
  for (std::byte& b : operand) b = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < operand.size(); i += type.extent) {
    type.fill(operand.data() + i, random, element == Element::bool8);
  }
  return operand;
}

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const auto given = static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed));
    return given != 0 ? given : std::random_device()() % 99999 + 1;
  }();
  return value;
}

const std::vector<detail::TargetKernels>& targets() {
  static const std::vector<detail::TargetKernels> value = detail::kernel_tables_of_all_targets();
  return value;
}

}  // namespace plait::test
