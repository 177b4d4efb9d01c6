// The vector kernels, compiled once for each instruction set with Highway. One loop serves all of
// them: an operator is a few lines on vectors, and short counts and the ends of arrays go through
// the same operator with narrower or overlapping vectors, so that an element's bits do not depend
// on where in the array it stands. Nor do they depend on the vector's width: every operator is lane
// by lane, and the build forbids contraction to fused multiply-add.

// SSSE3 without SSE4 is too old to be worth the code. EMU128 is miscompiled by GCC 12.2 (its bug
// 106322), so the fallback for processors without SSE4 is Highway's one-lane SCALAR, under every
// compiler.
#define HWY_DISABLED_TARGETS HWY_SSSE3
#define HWY_BROKEN_EMU128 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels.cpp"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>

#include "core/kernels.h"

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

// ---- The loop ----

// Addressed by bytes: no pointer need be aligned for the type it points to.
struct Operands {
  std::uint8_t* result;
  const std::uint8_t* left;
  const std::uint8_t* right;
};

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

template <class Operator, class D>
HWY_INLINE hn::Vec<D> combine(D d, const Operands& at, std::size_t offset) {
  return Operator::apply(d, load(d, at.left + offset), load(d, at.right + offset));
}

// `size` bytes, from one vector to two: the first and the last, which may overlap. Both are
// computed before either is stored, because the result may be one of the operands.
template <class Operator, class D>
HWY_INLINE void both_ends(D d, const Operands& at, std::size_t size) {
  const std::size_t last_offset = size - hn::Lanes(d) * sizeof(hn::TFromD<D>);
  const auto first = combine<Operator>(d, at, 0);
  const auto last = combine<Operator>(d, at, last_offset);
  store(d, first, at.result);
  store(d, last, at.result + last_offset);
}

// At most 2 * WidestLanes lanes: the widest vector that fits, down to one element.
template <class Operator, typename T, std::size_t ElementLanes, std::size_t WidestLanes>
HWY_INLINE void few(const Operands& at, std::size_t size) {
  const hn::CappedTag<T, WidestLanes> d;
  if (size >= hn::Lanes(d) * sizeof(T)) {
    both_ends<Operator>(d, at, size);
  } else if constexpr (WidestLanes > ElementLanes) {
    few<Operator, T, ElementLanes, WidestLanes / 2>(at, size);
  }
}

// More than two vectors. The ends are computed first and stored last; between them whole vectors,
// the result aligned where its elements are: a store across two cache lines costs twice.
template <class Operator, std::size_t ElementBytes, class D>
HWY_INLINE void many(D d, const Operands& at, std::size_t size) {
  const std::size_t vector = hn::Lanes(d) * sizeof(hn::TFromD<D>);
  const std::size_t last_offset = size - vector;
  const auto first = combine<Operator>(d, at, 0);
  const auto last = combine<Operator>(d, at, last_offset);
  const std::size_t to_aligned = -reinterpret_cast<std::uintptr_t>(at.result) % vector;
  std::size_t i = to_aligned % ElementBytes == 0 ? to_aligned : vector;
  for (; i + 4 * vector <= size; i += 4 * vector) {
    const auto v0 = combine<Operator>(d, at, i);
    const auto v1 = combine<Operator>(d, at, i + vector);
    const auto v2 = combine<Operator>(d, at, i + 2 * vector);
    const auto v3 = combine<Operator>(d, at, i + 3 * vector);
    store(d, v0, at.result + i);
    store(d, v1, at.result + i + vector);
    store(d, v2, at.result + i + 2 * vector);
    store(d, v3, at.result + i + 3 * vector);
  }
  for (; i < last_offset; i += vector) store(d, combine<Operator>(d, at, i), at.result + i);
  store(d, first, at.result);
  store(d, last, at.result + last_offset);
}

// The kernel: elements of ElementLanes lanes of T each.
template <class Operator, typename T, std::size_t ElementLanes = 1>
void reduce(void* result, const void* left, const void* right, std::size_t count) {
  static constexpr std::size_t element_bytes = ElementLanes * sizeof(T);
  const Operands at = {static_cast<std::uint8_t*>(result), static_cast<const std::uint8_t*>(left),
                       static_cast<const std::uint8_t*>(right)};
  // Small messages are the most frequent ones.
  const hn::CappedTag<T, ElementLanes> one;
  if (count == 1 && hn::MaxLanes(one) == ElementLanes) {
    return store(one, combine<Operator>(one, at, 0), at.result);
  }
  const hn::ScalableTag<T> d;
  const std::size_t size = count * element_bytes;
  if (size > 2 * hn::Lanes(d) * sizeof(T)) return many<Operator, element_bytes>(d, at, size);
  few<Operator, T, ElementLanes, hn::MaxLanes(hn::ScalableTag<T>())>(at, size);
}

// ---- The table ----

template <typename Signed, typename Unsigned>
void add_integers(KernelTable& table, Element with_sign, Element without_sign) {
  table.at(Op::max, with_sign) = reduce<Max, Signed>;
  table.at(Op::min, with_sign) = reduce<Min, Signed>;
  table.at(Op::max, without_sign) = reduce<Max, Unsigned>;
  table.at(Op::min, without_sign) = reduce<Min, Unsigned>;
  // The rest is the same for both: sums and products wrap around.
  for (const Element element : {with_sign, without_sign}) {
    table.at(Op::sum, element) = reduce<Sum, Unsigned>;
    if constexpr (sizeof(Unsigned) == 1) {
      table.at(Op::prod, element) = reduce<ProdBytes, Unsigned>;
    } else {
      table.at(Op::prod, element) = reduce<Prod, Unsigned>;
    }
    table.at(Op::band, element) = reduce<Band, Unsigned>;
    table.at(Op::bor, element) = reduce<Bor, Unsigned>;
    table.at(Op::bxor, element) = reduce<Bxor, Unsigned>;
    table.at(Op::land, element) = reduce<Land, Unsigned>;
    table.at(Op::lor, element) = reduce<Lor, Unsigned>;
    table.at(Op::lxor, element) = reduce<Lxor, Unsigned>;
  }
}

template <typename T>
void add_floating(KernelTable& table, Element real, Element complex) {
  table.at(Op::max, real) = reduce<Max, T>;
  table.at(Op::min, real) = reduce<Min, T>;
  table.at(Op::sum, real) = reduce<Sum, T>;
  table.at(Op::prod, real) = reduce<Prod, T>;
  table.at(Op::sum, complex) = reduce<Sum, T, 2>;
#if HWY_TARGET != HWY_SCALAR  // which keeps the plain loop
  table.at(Op::prod, complex) = reduce<ProdComplex, T, 2>;
#endif
}

void copy_kernels(KernelTable& table, Element from, Element to, Op a, Op b, Op c) {
  for (const Op op : {a, b, c}) table.at(op, to) = table.at(op, from);
}

void add_vector_kernels(KernelTable& table) {
  add_integers<std::int8_t, std::uint8_t>(table, Element::i8, Element::u8);
  add_integers<std::int16_t, std::uint16_t>(table, Element::i16, Element::u16);
  add_integers<std::int32_t, std::uint32_t>(table, Element::i32, Element::u32);
  add_integers<std::int64_t, std::uint64_t>(table, Element::i64, Element::u64);
  add_floating<float>(table, Element::f32, Element::c32);
  add_floating<double>(table, Element::f64, Element::c64);
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

#if HWY_ONCE

namespace plait::detail {

HWY_EXPORT(add_vector_kernels);

const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable result;
    add_scalar_kernels(result);
    HWY_DYNAMIC_DISPATCH(add_vector_kernels)(result);
    return result;
  }();
  return table;
}

std::vector<TargetKernels> kernel_tables_of_all_targets() {
  std::vector<TargetKernels> tables;
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  tables.push_back({hwy::TargetName(HWY_TARGETS), kernel_table()});
#else
  const std::int64_t targets = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
  for (std::int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::ChosenTarget chosen;  // one of our own: the process's choice stays as it is
    chosen.Update(target);
    TargetKernels& added = tables.emplace_back(TargetKernels{hwy::TargetName(target), {}});
    add_scalar_kernels(added.table);
    HWY_DISPATCH_TABLE(add_vector_kernels)[chosen.GetIndex()](added.table);
  }
#endif
  return tables;
}

}  // namespace plait::detail

#endif  // HWY_ONCE
