// Elements of rows, as floats. Included once for each instruction set, by what foreach_target.h compiles again and
// again.
#if defined(PLAIT_FUSED_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PLAIT_FUSED_ROWS_INL_H
#undef PLAIT_FUSED_ROWS_INL_H
#else
#define PLAIT_FUSED_ROWS_INL_H
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::fused::rows::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

struct F32 {
  static constexpr std::size_t bytes = 4;
  static HWY_INLINE hn::Vec<Floats> load(Floats d, const std::byte* from) {
    return hn::LoadU(d, reinterpret_cast<const float*>(from));
  }
  static HWY_INLINE float element(const std::byte* from) { return *reinterpret_cast<const float*>(from); }
  static HWY_INLINE void store(hn::Vec<Floats> value, std::byte* to) {
    hn::StoreU(value, Floats(), reinterpret_cast<float*>(to));
  }
  static HWY_INLINE void put(float value, std::byte* to) { *reinterpret_cast<float*>(to) = value; }
};

struct Bf16 {
  static constexpr std::size_t bytes = 2;
  static HWY_INLINE hn::Vec<Floats> load(Floats d, const std::byte* from) {
    const hn::Rebind<std::uint16_t, Floats> half;
    const hn::RebindToUnsigned<Floats> word;
    const auto halves = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(word, halves)));
  }
  static HWY_INLINE float element(const std::byte* from) {
    const std::uint32_t word = std::uint32_t{*reinterpret_cast<const std::uint16_t*>(from)} << 16;
    float value;
    hwy::CopyBytes<sizeof value>(&word, &value);
    return value;
  }
  // To the nearest, ties to even. What is no number stays none: its upper half is not rounded, and keeps a bit.
  static HWY_INLINE void store(hn::Vec<Floats> value, std::byte* to) {
    const hn::RebindToUnsigned<Floats> word;
    const hn::RebindToSigned<Floats> number;
    const hn::Rebind<std::uint16_t, Floats> half;
    const auto bits = hn::BitCast(word, value);
    const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(word, 1u));
    const auto nearest = hn::Add(bits, hn::Add(even, hn::Set(word, 0x7fffu)));
    const auto none = hn::Or(bits, hn::Set(word, 0x00400000u));
    const auto chosen = hn::IfThenElse(hn::RebindMask(word, hn::IsNaN(value)), none, nearest);
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(number, hn::ShiftRight<16>(chosen))), half,
               reinterpret_cast<std::uint16_t*>(to));
  }
  static HWY_INLINE void put(float value, std::byte* to) {
    std::uint32_t bits;
    hwy::CopyBytes<sizeof bits>(&value, &bits);
    bits = value != value ? bits | 0x00400000u : bits + ((bits >> 16) & 1u) + 0x7fffu;
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(bits >> 16);
  }
};

struct I8 {
  static constexpr std::size_t bytes = 1;
  static HWY_INLINE hn::Vec<Floats> load(Floats d, const std::byte* from) {
    const hn::Rebind<std::int8_t, Floats> quarter;
    const hn::RebindToSigned<Floats> word;
    const auto quarters = hn::LoadU(quarter, reinterpret_cast<const std::int8_t*>(from));
    return hn::ConvertTo(d, hn::PromoteTo(word, quarters));
  }
  static HWY_INLINE float element(const std::byte* from) {
    return static_cast<float>(*reinterpret_cast<const std::int8_t*>(from));
  }
};

}  // namespace plait::fused::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
