// The vector kernels of ordered sums, compiled once for each instruction set with Highway.

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/reproducible/ordered_kernels.cpp"
#include "hwy/foreach_target.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/reproducible/ordered_kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Type {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  using Whole = std::make_signed_t<Bits>;
  using Key = std::conditional_t<sizeof(T) == 8, std::uint16_t, std::uint8_t>;
  static constexpr int stored_bits = sizeof(T) == 8 ? 52 : 23, guard_bits = 3;
  static constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1), one_field = Bits{1} << stored_bits,
                        special_field = sizeof(T) == 8 ? 0x7ff : 0xff;
  // Fields of largest operands of which a step of the grid is a normal number, and 2^11 times as much is finite.
  static constexpr Bits least_plain = stored_bits + guard_bits + 2, beyond_plain = special_field - 12;
};

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::byte* from) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
}

// ---- Of all operands at once ----

// To the grid of numbers whose last place is that of `magic`, which is 2^(largest exponent - guard bits).
template <class D>
HWY_INLINE hn::Vec<D> on_grid(hn::Vec<D> x, hn::Vec<D> magic) {
  const auto towards = hn::CopySign(magic, x);
  const auto rounded = hn::Sub(hn::Add(x, towards), towards);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), magic), rounded, x);
}

// False, and nothing stored, where some sum is not plain.
template <class D>
HWY_INLINE bool sum_vector(D d, const ManyOperands& of, std::size_t offset) {
  using T = hn::TFromD<D>;
  using B = typename Type<T>::Bits;
  const hn::RebindToSigned<D> whole;  // of sizes, which are positive: compared faster than unsigned ones
  using W = hn::TFromD<decltype(whole)>;
  auto largest = hn::Zero(whole);
  for (std::size_t s = 0; s < of.source_count; ++s)
    largest = hn::Max(largest, hn::BitCast(whole, hn::Abs(load(d, of.sources[s] + offset))));
  constexpr auto least = static_cast<W>(Type<T>::least_plain * Type<T>::one_field),
                 beyond = static_cast<W>(Type<T>::beyond_plain * Type<T>::one_field);
  const auto plain =
      hn::And(hn::Gt(largest, hn::Set(whole, static_cast<W>(least - 1))), hn::Gt(hn::Set(whole, beyond), largest));
  if (!hn::AllTrue(whole, plain)) return false;
  constexpr auto fields = static_cast<W>(B{Type<T>::special_field} << Type<T>::stored_bits);
  const auto magic = hn::BitCast(d, hn::Sub(hn::And(largest, hn::Set(whole, fields)),
                                            hn::Set(whole, static_cast<W>(Type<T>::guard_bits * Type<T>::one_field))));
  auto sum = on_grid<D>(load(d, of.sources[0] + offset), magic);
  auto rest = hn::Zero(d);  // what the sums have rounded off: exact, as all are on the grid
  if (of.source_count == 2) sum = hn::Add(sum, on_grid<D>(load(d, of.sources[1] + offset), magic));
  for (std::size_t s = 1; s < of.source_count && of.source_count > 2; ++s) {
    const auto x = on_grid<D>(load(d, of.sources[s] + offset), magic);
    const auto next = hn::Add(sum, x);
    const auto taken = hn::Sub(next, sum);
    rest = hn::Add(rest, hn::Add(hn::Sub(sum, hn::Sub(next, taken)), hn::Sub(x, taken)));
    sum = next;
  }
  if (of.source_count > 2) sum = hn::Add(sum, rest);
  for (std::size_t r = 0; r < of.result_count; ++r) hn::StoreU(sum, d, reinterpret_cast<T*>(of.results[r] + offset));
  return true;
}

template <typename T>
void sum(const ManyOperands& of, std::size_t reals, SumRange otherwise) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= reals; i += lanes)
    if (!sum_vector(d, of, i * sizeof(T))) otherwise(of, i, i + lanes);
  for (; i < reals; ++i)
    if (!sum_vector(one, of, i * sizeof(T))) otherwise(of, i, i + 1);
}

// ---- Keys and steps ----

template <class D>
HWY_INLINE hn::Vec<D> load_keys(D d, const std::uint16_t* keys) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> between;
  return hn::PromoteTo(d, hn::PromoteTo(between, hn::LoadU(narrow, keys)));
}
template <class D>
HWY_INLINE hn::Vec<D> load_keys(D d, const std::uint8_t* keys) {
  const hn::Rebind<std::uint8_t, D> narrow;
  return hn::PromoteTo(d, hn::LoadU(narrow, keys));
}

// Of one vector; D: unsigned words as wide as the type.
template <typename T, class D>
HWY_INLINE void keys_of_vector(D d, typename Type<T>::Key* keys, const std::byte* from) {
  using B = typename Type<T>::Bits;
  const auto bits = load(d, from);
  const auto field =
      hn::And(hn::ShiftRight<Type<T>::stored_bits>(bits), hn::Set(d, static_cast<B>(Type<T>::special_field)));
  const auto key = hn::IfThenElse(hn::Eq(field, hn::Zero(d)), hn::Set(d, B{1}), field);
  const auto negative_zero = hn::Eq(bits, hn::Set(d, static_cast<B>(Type<T>::sign)));
  const hn::Rebind<typename Type<T>::Key, D> narrow;
  hn::StoreU(hn::TruncateTo(narrow, hn::IfThenZeroElse(negative_zero, key)), narrow, keys);
}

// body(d, i) for each whole vector; returns where it stopped.
template <typename T, class Body>
HWY_INLINE std::size_t for_each_vector(std::size_t count, Body&& body) {
  const hn::ScalableTag<typename Type<T>::Bits> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) body(d, i);
  return i;
}

template <typename T>
void make_keys(void* keys, const void* operands, std::size_t count) {
  auto* to = static_cast<typename Type<T>::Key*>(keys);
  const auto* from = static_cast<const std::byte*>(operands);
  std::size_t i = for_each_vector<T>(
      count, [&](auto d, std::size_t at) HWY_ATTR { keys_of_vector<T>(d, to + at, from + at * sizeof(T)); });
  const hn::CappedTag<typename Type<T>::Bits, 1> one;
  for (; i < count; ++i) keys_of_vector<T>(one, to + i, from + i * sizeof(T));
}

// False, and nothing stored, where a largest operand is not finite.
template <typename T, class D>
HWY_INLINE bool cut_vector(D d, std::byte* to, const std::byte* from, const typename Type<T>::Key* keys) {
  using B = typename Type<T>::Bits;
  const auto all = [&](B bits) HWY_ATTR { return hn::Set(d, bits); };
  const auto key = load_keys(d, keys);
  if (!hn::AllFalse(d, hn::Eq(key, all(Type<T>::special_field)))) return false;
  const auto bits = load(d, from);
  const auto field = hn::And(hn::ShiftRight<Type<T>::stored_bits>(bits), all(Type<T>::special_field));
  const auto none = hn::Eq(field, hn::Zero(d));  // subnormal, or a zero
  const auto stored = hn::And(bits, all(Type<T>::one_field - 1));
  const auto significand = hn::IfThenElse(none, stored, hn::Or(stored, all(Type<T>::one_field)));
  // By one more than the difference of the fields, of what has a bit more, so that there is always a bit to round off;
  // a largest key of 0 is one of zeros alone. What is far below the grid vanishes.
  const auto own = hn::IfThenElse(none, all(1), field);
  const auto largest = hn::IfThenElse(hn::Eq(key, hn::Zero(d)), all(1), key);
  const auto apart = hn::Min(hn::Add(hn::Sub(largest, own), all(1)), all(8 * sizeof(T) - 1));
  const auto size = hn::ShiftLeft<Type<T>::guard_bits + 1>(significand);
  const auto half = hn::Shl(all(1), hn::Sub(apart, all(1)));
  const auto odd = hn::And(hn::Shr(size, apart), all(1));
  const auto steps = hn::Shr(hn::Add(hn::Add(size, hn::Sub(half, all(1))), odd), apart);
  const auto negative = hn::Ne(hn::And(bits, all(Type<T>::sign)), hn::Zero(d));
  const auto signed_steps = hn::IfThenElse(negative, hn::Sub(hn::Zero(d), steps), steps);
  hn::StoreU(signed_steps, d, reinterpret_cast<B*>(to));
  return true;
}

template <typename T>
void cut(void* steps, const void* operands, const void* largest_keys, std::size_t count, StepsKernel otherwise) {
  auto* to = static_cast<std::byte*>(steps);
  const auto* from = static_cast<const std::byte*>(operands);
  const auto* keys = static_cast<const typename Type<T>::Key*>(largest_keys);
  const auto leave = [&](std::size_t i, std::size_t some) {
    otherwise(to + i * sizeof(T), from + i * sizeof(T), keys + i, some);
  };
  const std::size_t done = for_each_vector<T>(count, [&](auto d, std::size_t i) HWY_ATTR {
    const std::size_t at = i * sizeof(T);
    if (!cut_vector<T>(d, to + at, from + at, keys + i)) leave(i, hn::Lanes(d));
  });
  if (done < count) leave(done, count - done);
}

// Signed words as numbers, rounded once: both halves are exact.
template <class D>
HWY_INLINE auto number_of(D d, hn::Vec<D> steps) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToFloat<D> real;
    const hn::RebindToSigned<D> whole;
    return hn::ConvertTo(real, hn::BitCast(whole, steps));
  } else {
    const hn::RebindToFloat<D> real;
    constexpr std::uint64_t two_52 = 0x4330000000000000;
    const auto biased = hn::Xor(steps, hn::Set(d, Type<double>::sign));  // 2^63 more
    const auto exact = [&](auto half) HWY_ATTR {
      return hn::Sub(hn::BitCast(real, hn::Or(half, hn::Set(d, two_52))), hn::Set(real, 0x1p52));
    };
    const auto high = hn::Sub(hn::Mul(exact(hn::ShiftRight<32>(biased)), hn::Set(real, 0x1p32)), hn::Set(real, 0x1p63));
    return hn::Add(high, exact(hn::And(biased, hn::Set(d, std::uint64_t{0xffffffff}))));
  }
}

// False, and nothing stored, where some sum is not plain.
template <typename T, class D>
HWY_INLINE bool round_vector(D d, std::byte* to, const std::byte* from, const typename Type<T>::Key* keys) {
  using B = typename Type<T>::Bits;
  const hn::RebindToSigned<D> whole;
  using W = hn::TFromD<decltype(whole)>;
  const auto key = load_keys(d, keys);
  const auto signed_key = hn::BitCast(whole, key);
  const auto plain = hn::And(hn::Gt(signed_key, hn::Set(whole, static_cast<W>(Type<T>::least_plain - 1))),
                             hn::Gt(hn::Set(whole, static_cast<W>(Type<T>::beyond_plain)), signed_key));
  if (!hn::AllTrue(whole, plain)) return false;
  const hn::RebindToFloat<D> real;
  constexpr B below = Type<T>::stored_bits + Type<T>::guard_bits;
  const auto step = hn::BitCast(real, hn::ShiftLeft<Type<T>::stored_bits>(hn::Sub(key, hn::Set(d, below))));
  hn::StoreU(hn::Mul(number_of(d, load(d, from)), step), real, reinterpret_cast<T*>(to));
  return true;
}

template <typename T>
void round(void* results, const void* steps, const void* largest_keys, std::size_t count, StepsKernel otherwise) {
  auto* to = static_cast<std::byte*>(results);
  const auto* from = static_cast<const std::byte*>(steps);
  const auto* keys = static_cast<const typename Type<T>::Key*>(largest_keys);
  const auto leave = [&](std::size_t i, std::size_t some) {
    otherwise(to + i * sizeof(T), from + i * sizeof(T), keys + i, some);
  };
  const std::size_t done = for_each_vector<T>(count, [&](auto d, std::size_t i) HWY_ATTR {
    const std::size_t at = i * sizeof(T);
    if (!round_vector<T>(d, to + at, from + at, keys + i)) leave(i, hn::Lanes(d));
  });
  if (done < count) leave(done, count - done);
}

template <typename T>
OrderedKernelsOf<T> kernels_of() {
  return {.sum = sum<T>, .make_keys = make_keys<T>, .cut = cut<T>, .round = round<T>};
}

void add_ordered_kernels(OrderedKernels& kernels) {
  kernels.f32 = kernels_of<float>();
  kernels.f64 = kernels_of<double>();
}

}  // namespace plait::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cfenv>

#include "core/kernel_dispatch.h"

namespace plait::detail {

namespace {
constexpr Compiled<void(OrderedKernels&)> compiled_kernels[] = PLAIT_COMPILED(add_ordered_kernels);
}

const OrderedKernels& ordered_kernels() {
  static const OrderedKernels kernels = [] {
    OrderedKernels result;
    best_of(compiled_kernels)(result);
    return result;
  }();
  return kernels;
}

bool rounds_to_nearest() { return std::fegetround() == FE_TONEAREST; }

std::vector<OrderedKernels> ordered_kernels_of_all_targets() {
  std::vector<OrderedKernels> all;
  for (const auto& compiled : compiled_kernels)
    if (runs_here(compiled)) compiled.function(all.emplace_back());
  return all;
}

}  // namespace plait::detail

#endif  // HWY_ONCE
