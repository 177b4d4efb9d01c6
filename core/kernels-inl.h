// The operators on vectors, compiled once for each instruction set with Highway. An operator is a
// few lines; the loops that apply it are in kernels.cpp (two operands) and kernels_many.cpp.
//
// An element's bits depend neither on where in the array it stands nor on the vector's width: every
// operator is lane by lane, and the build forbids contraction to fused multiply-add.

// Included once for each instruction set: no #pragma once.
#if defined(PLAIT_CORE_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PLAIT_CORE_KERNELS_INL_H
#undef PLAIT_CORE_KERNELS_INL_H
#else
#define PLAIT_CORE_KERNELS_INL_H
#endif

#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/kernels.h"
#include "core/short_real.h"

HWY_BEFORE_NAMESPACE();
namespace plait::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ---- Operators: result lanes from left and right lanes ----

struct Sum {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Add(left, right);
  }
};

struct Prod {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Mul(left, right);
  }
};

// There is no multiplication of bytes. Two of them make a 16-bit lane: the low bytes' product is
// the low half of the lanes' product, the high bytes' product is formed after shifting them down.
struct ProdBytes {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(d, static_cast<std::uint8_t>(hn::GetLane(left) * hn::GetLane(right)));
    } else {
      const hn::Repartition<std::uint16_t, D> wide;
      const auto left_wide = hn::BitCast(wide, left);
      const auto right_wide = hn::BitCast(wide, right);
      const auto low = hn::And(hn::Mul(left_wide, right_wide), hn::Set(wide, 0x00ff));
      const auto high = hn::Mul(hn::ShiftRight<8>(left_wide), hn::ShiftRight<8>(right_wide));
      return hn::BitCast(d, hn::Or(low, hn::ShiftLeft<8>(high)));
    }
  }
};

#if HWY_TARGET != HWY_SCALAR
// (a + bi)(c + di) = (ac - bd) + (ad + bc)i, without C99's rescue of infinities. Needs vectors of
// two lanes.
struct ProdComplex {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    const V by_real = hn::Mul(hn::DupEven(left), right);                       // ac, ad
    const V by_imaginary = hn::Mul(hn::DupOdd(left), hn::Reverse2(d, right));  // bd, bc
    return hn::OddEven(hn::Add(by_real, by_imaginary), hn::Sub(by_real, by_imaginary));
  }
};
#endif

// Floating point spells the comparison out: Highway leaves open what Max does with NaN and with
// zeros of both signs.
struct Max {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::IfThenElse(hn::Gt(left, right), left, right);
    return hn::Max(left, right);
  }
};

struct Min {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::IfThenElse(hn::Lt(left, right), left, right);
    return hn::Min(left, right);
  }
};

struct Band {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::And(left, right);
  }
};

struct Bor {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Or(left, right);
  }
};

struct Bxor {
  template <class D, class V>
  static HWY_INLINE V apply(D, V left, V right) {
    return hn::Xor(left, right);
  }
};

struct Land {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    const V zero = hn::Zero(d);
    return hn::IfThenZeroElse(hn::Or(hn::Eq(left, zero), hn::Eq(right, zero)), hn::Set(d, 1));
  }
};

struct Lor {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    return hn::IfThenZeroElse(hn::Eq(hn::Or(left, right), hn::Zero(d)), hn::Set(d, 1));
  }
};

struct Lxor {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    const V zero = hn::Zero(d);
    return hn::IfThenElseZero(hn::Xor(hn::Eq(left, zero), hn::Eq(right, zero)), hn::Set(d, 1));
  }
};

// ---- Reals of 16 bits: short_real.h on lanes of 32 bits, whose upper half is 0 ----

struct F16Lanes {
  template <class D, class V>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> value(D d, V bits) {
    const hn::Rebind<float, D> real;
    const V magnitude = hn::ShiftLeft<f16_shift>(hn::And(bits, hn::Set(d, 0x7fff)));
    const V infinity = hn::Set(d, std::uint32_t{infinity_f16} << f16_shift), least = hn::Set(d, least_f16);
    const V exponent = hn::And(magnitude, infinity);
    const V small = hn::BitCast(d, hn::Sub(hn::BitCast(real, hn::Add(magnitude, least)), hn::BitCast(real, least)));
    const V usual = hn::IfThenElse(hn::Eq(exponent, infinity), hn::Or(magnitude, hn::Set(d, infinity_32)),
                                   hn::Add(magnitude, hn::Set(d, bias_f16)));
    const V all = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d)), small, usual);
    return hn::BitCast(real, hn::Or(all, hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000)))));
  }

  template <class D, class V>
  static HWY_INLINE hn::Vec<D> rounded(D d, V value) {
    const hn::Rebind<float, D> real;
    using Bits = hn::Vec<D>;
    const Bits bits = hn::BitCast(d, value);
    const Bits magnitude = hn::And(bits, hn::Set(d, ~sign_32)), shift = hn::Set(d, rounds_small_f16);
    const Bits small = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(real, magnitude), hn::BitCast(real, shift))), shift);
    const Bits shifted = hn::ShiftRight<f16_shift>(magnitude);
    const Bits up = hn::Add(hn::Set(d, 0xfff), hn::And(shifted, hn::Set(d, 1)));
    const Bits usual = hn::ShiftRight<f16_shift>(hn::Add(hn::Sub(magnitude, hn::Set(d, bias_f16)), up));
    const Bits infinity = hn::Set(d, infinity_f16);
    const Bits nan = hn::Or(hn::Or(infinity, hn::Set(d, quiet_f16)), hn::And(shifted, hn::Set(d, 0x3ff)));
    Bits all = hn::IfThenElse(less(d, magnitude, least_f16), small, usual);
    all = hn::IfThenElse(less(d, magnitude, beyond_f16), all, infinity);
    all = hn::IfThenElse(less(d, magnitude, infinity_32 + 1), all, nan);
    return hn::Or(all, hn::ShiftRight<16>(hn::And(bits, hn::Set(d, sign_32))));
  }

 private:
  // Magnitudes, which are no negative numbers.
  template <class D, class V>
  static HWY_INLINE hn::Mask<D> less(D d, V magnitude, std::uint32_t than) {
    const hn::Rebind<std::int32_t, D> with_sign;
    return hn::RebindMask(
        d, hn::Lt(hn::BitCast(with_sign, magnitude), hn::Set(with_sign, static_cast<std::int32_t>(than))));
  }
};

struct Bf16Lanes {
  template <class D, class V>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> value(D, V bits) {
    return hn::BitCast(hn::Rebind<float, D>(), hn::ShiftLeft<16>(bits));
  }

  template <class D, class V>
  static HWY_INLINE hn::Vec<D> rounded(D d, V value) {
    const hn::Vec<D> bits = hn::BitCast(d, value), upper = hn::ShiftRight<16>(bits);
    const auto up = hn::Add(hn::Set(d, 0x7fff), hn::And(upper, hn::Set(d, 1)));
    const auto is_real = hn::RebindMask(d, hn::Eq(value, value));
    return hn::IfThenElse(is_real, hn::ShiftRight<16>(hn::Add(bits, up)), hn::Or(upper, hn::Set(d, quiet_bf16)));
  }
};

// What is done to a real: combined, or one of the two as it is.
template <class Format, class Operator>
struct Combined {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    const hn::Rebind<float, D> real;
    return Format::rounded(d, Operator::apply(real, Format::value(d, left), Format::value(d, right)));
  }
};

template <class Format>
struct Greater {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    return hn::IfThenElse(hn::RebindMask(d, hn::Gt(Format::value(d, left), Format::value(d, right))), left, right);
  }
};

template <class Format>
struct Less {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    return hn::IfThenElse(hn::RebindMask(d, hn::Lt(Format::value(d, left), Format::value(d, right))), left, right);
  }
};

// Two reals in each 32 bits: the lower ones, then the upper ones.
template <class Each>
struct OnHalves {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V left, V right) {
    if constexpr (hn::MaxLanes(D()) == 1) {
      const hn::CappedTag<std::uint32_t, 1> wide;
      const auto both = Each::apply(wide, hn::Set(wide, hn::GetLane(left)), hn::Set(wide, hn::GetLane(right)));
      return hn::Set(d, static_cast<std::uint16_t>(hn::GetLane(both)));
    } else {
      const hn::Repartition<std::uint32_t, D> wide;
      const auto left_wide = hn::BitCast(wide, left), right_wide = hn::BitCast(wide, right);
      const auto lower = hn::Set(wide, 0xffff);
      const auto low = Each::apply(wide, hn::And(left_wide, lower), hn::And(right_wide, lower));
      const auto high = Each::apply(wide, hn::ShiftRight<16>(left_wide), hn::ShiftRight<16>(right_wide));
      return hn::BitCast(d, hn::Or(low, hn::ShiftLeft<16>(high)));
    }
  }
};

// ---- Memory, addressed by bytes: no pointer need be aligned for the type it points to ----

#if HWY_TARGET == HWY_SCALAR
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from) {
  hn::TFromD<D> lane;
  hwy::CopyBytes<sizeof(lane)>(from, &lane);
  return hn::Set(d, lane);
}

template <class D>
HWY_INLINE void store(D, hn::Vec<D> value, std::uint8_t* to) {
  const hn::TFromD<D> lane = hn::GetLane(value);
  hwy::CopyBytes<sizeof(lane)>(&lane, to);
}
#else
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from) {
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, from));
}

template <class D>
HWY_INLINE void store(D, hn::Vec<D> value, std::uint8_t* to) {
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, value), bytes, to);
}
#endif

// ---- Which operator serves which types ----

// Family::of<Operator, T, ElementLanes>() is a kernel of elements of ElementLanes lanes of T each.

template <class Family, typename Signed, typename Unsigned, class Table>
void add_integers(Table& table, Element with_sign, Element without_sign) {
  table.at(Op::max, with_sign) = Family::template of<Max, Signed>();
  table.at(Op::min, with_sign) = Family::template of<Min, Signed>();
  table.at(Op::max, without_sign) = Family::template of<Max, Unsigned>();
  table.at(Op::min, without_sign) = Family::template of<Min, Unsigned>();
  // The rest is the same for both: sums and products wrap around.
  for (const Element element : {with_sign, without_sign}) {
    table.at(Op::sum, element) = Family::template of<Sum, Unsigned>();
    if constexpr (sizeof(Unsigned) == 1) {
      table.at(Op::prod, element) = Family::template of<ProdBytes, Unsigned>();
    } else {
      table.at(Op::prod, element) = Family::template of<Prod, Unsigned>();
    }
    table.at(Op::band, element) = Family::template of<Band, Unsigned>();
    table.at(Op::bor, element) = Family::template of<Bor, Unsigned>();
    table.at(Op::bxor, element) = Family::template of<Bxor, Unsigned>();
    table.at(Op::land, element) = Family::template of<Land, Unsigned>();
    table.at(Op::lor, element) = Family::template of<Lor, Unsigned>();
    table.at(Op::lxor, element) = Family::template of<Lxor, Unsigned>();
  }
}

template <class Family, typename T, class Table>
void add_floating(Table& table, Element real, Element complex) {
  table.at(Op::max, real) = Family::template of<Max, T>();
  table.at(Op::min, real) = Family::template of<Min, T>();
  table.at(Op::sum, real) = Family::template of<Sum, T>();
  table.at(Op::prod, real) = Family::template of<Prod, T>();
  table.at(Op::sum, complex) = Family::template of<Sum, T, 2>();
#if HWY_TARGET != HWY_SCALAR  // which keeps the plain loop
  table.at(Op::prod, complex) = Family::template of<ProdComplex, T, 2>();
#endif
}

template <class Family, class Format, class Table>
void add_halves(Table& table, Element real) {
  table.at(Op::max, real) = Family::template of<OnHalves<Greater<Format>>, std::uint16_t>();
  table.at(Op::min, real) = Family::template of<OnHalves<Less<Format>>, std::uint16_t>();
  table.at(Op::sum, real) = Family::template of<OnHalves<Combined<Format, Sum>>, std::uint16_t>();
  table.at(Op::prod, real) = Family::template of<OnHalves<Combined<Format, Prod>>, std::uint16_t>();
}

template <class Table>
void copy_kernels(Table& table, Element from, Element to, Op a, Op b, Op c) {
  for (const Op op : {a, b, c}) table.at(op, to) = table.at(op, from);
}

template <class Family, class Table>
void add_family(Table& table) {
  add_integers<Family, std::int8_t, std::uint8_t>(table, Element::i8, Element::u8);
  add_integers<Family, std::int16_t, std::uint16_t>(table, Element::i16, Element::u16);
  add_integers<Family, std::int32_t, std::uint32_t>(table, Element::i32, Element::u32);
  add_integers<Family, std::int64_t, std::uint64_t>(table, Element::i64, Element::u64);
  add_halves<Family, F16Lanes>(table, Element::f16);
  add_halves<Family, Bf16Lanes>(table, Element::bf16);
  add_floating<Family, float>(table, Element::f32, Element::c32);
  add_floating<Family, double>(table, Element::f64, Element::c64);
  // A truth value is an integer that is zero or not.
  copy_kernels(table, Element::u8, Element::bool8, Op::land, Op::lor, Op::lxor);
  copy_kernels(table, Element::u8, Element::logical8, Op::land, Op::lor, Op::lxor);
  copy_kernels(table, Element::u16, Element::logical16, Op::land, Op::lor, Op::lxor);
  copy_kernels(table, Element::u32, Element::logical32, Op::land, Op::lor, Op::lxor);
  copy_kernels(table, Element::u64, Element::logical64, Op::land, Op::lor, Op::lxor);
  copy_kernels(table, Element::u8, Element::byte8, Op::band, Op::bor, Op::bxor);
}

}  // namespace plait::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
