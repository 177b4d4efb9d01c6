// The vector kernels of any number of operands and results, and the copy from one operand to several
// results: one pass over memory, whatever the numbers. Compiled once for each instruction set with
// Highway.

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels_many.cpp"
#include "hwy/foreach_target.h"

#include "core/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::detail::HWY_NAMESPACE {

struct Copy {};  // of the one source

// ---- The loop ----

HWY_INLINE const std::uint8_t* source(const ManyOperands& of, std::size_t s) {
  return reinterpret_cast<const std::uint8_t*>(of.sources[s]);
}

HWY_INLINE std::uint8_t* result(const ManyOperands& of, std::size_t r) {
  return reinterpret_cast<std::uint8_t*>(of.results[r]);
}

template <class Operator, class D>
HWY_INLINE hn::Vec<D> fold(D d, const ManyOperands& of, std::size_t offset) {
  hn::Vec<D> folded = load(d, source(of, 0) + offset);
  if constexpr (!std::is_same_v<Operator, Copy>) {
    for (std::size_t s = 1; s < of.source_count; ++s) {
      folded = Operator::apply(d, folded, load(d, source(of, s) + offset));
    }
  }
  return folded;
}

template <class D>
HWY_INLINE void store_to_all(D d, hn::Vec<D> value, const ManyOperands& of, std::size_t offset) {
  for (std::size_t r = 0; r < of.result_count; ++r) store(d, value, result(of, r) + offset);
}

// Past the caches; `to` is aligned to the vector.
template <class D>
HWY_INLINE void stream([[maybe_unused]] D d, hn::Vec<D> value, std::uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR
  store(d, value, to);
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::Stream(hn::BitCast(bytes, value), bytes, to);
#endif
}

// `size` bytes, from one vector to two: the first and the last, which may overlap. Both are computed
// before either is stored, because results may be sources.
template <class Operator, class D>
HWY_INLINE void fold_both_ends(D d, const ManyOperands& of, std::size_t size) {
  const std::size_t last_offset = size - hn::Lanes(d) * sizeof(hn::TFromD<D>);
  const auto first = fold<Operator>(d, of, 0);
  const auto last = fold<Operator>(d, of, last_offset);
  store_to_all(d, first, of, 0);
  store_to_all(d, last, of, last_offset);
}

// At most 2 * WidestLanes lanes: the widest vector that fits, down to one element.
template <class Operator, typename T, std::size_t ElementLanes, std::size_t WidestLanes>
HWY_INLINE void fold_few(const ManyOperands& of, std::size_t size) {
  const hn::CappedTag<T, WidestLanes> d;
  if (size >= hn::Lanes(d) * sizeof(T)) {
    fold_both_ends<Operator>(d, of, size);
  } else if constexpr (WidestLanes > ElementLanes) {
    fold_few<Operator, T, ElementLanes, WidestLanes / 2>(of, size);
  }
}

template <class D>
HWY_INLINE void store_four(D d, hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2, hn::Vec<D> v3, std::uint8_t* to) {
  const std::size_t vector = hn::Lanes(d) * sizeof(hn::TFromD<D>);
  store(d, v0, to);
  store(d, v1, to + vector);
  store(d, v2, to + 2 * vector);
  store(d, v3, to + 3 * vector);
}

template <class D>
HWY_INLINE void stream_four(D d, hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2, hn::Vec<D> v3, std::uint8_t* to) {
  const std::size_t vector = hn::Lanes(d) * sizeof(hn::TFromD<D>);
  stream(d, v0, to);
  stream(d, v1, to + vector);
  stream(d, v2, to + 2 * vector);
  stream(d, v3, to + 3 * vector);
}

// Whole vectors from `begin` on, four at a time; returns where it stopped. Code for fixed numbers of sources, whose
// addresses stay in registers, gains only where all arrays are in the first-level cache (four sources of 4 KiB: 223
// against 344 ns) and doubles the size of this file's products.
template <class Operator, class D>
HWY_INLINE std::size_t fold_fours(D d, const ManyOperands& of, std::size_t begin, std::size_t size) {
  using V = hn::Vec<D>;
  const std::size_t vector = hn::Lanes(d) * sizeof(hn::TFromD<D>);
  std::size_t i = begin;
  for (; i + 4 * vector <= size; i += 4 * vector) {
    const std::uint8_t* at = source(of, 0) + i;
    V v0 = load(d, at), v1 = load(d, at + vector), v2 = load(d, at + 2 * vector), v3 = load(d, at + 3 * vector);
    if constexpr (!std::is_same_v<Operator, Copy>) {
      for (std::size_t s = 1; s < of.source_count; ++s) {
        at = source(of, s) + i;
        v0 = Operator::apply(d, v0, load(d, at));
        v1 = Operator::apply(d, v1, load(d, at + vector));
        v2 = Operator::apply(d, v2, load(d, at + 2 * vector));
        v3 = Operator::apply(d, v3, load(d, at + 3 * vector));
      }
    }
    for (std::size_t r = 0; r < of.result_count; ++r) {
      std::uint8_t* const to = result(of, r) + i;
      const bool aligned = reinterpret_cast<std::uintptr_t>(to) % vector == 0;
      if (of.streaming && aligned)
        stream_four(d, v0, v1, v2, v3, to);
      else
        store_four(d, v0, v1, v2, v3, to);
    }
  }
  return i;
}

// More than two vectors. The ends are computed first and stored last; between them whole vectors,
// the first result aligned where its elements are.
template <class Operator, std::size_t ElementBytes, class D>
HWY_INLINE void fold_many(D d, const ManyOperands& of, std::size_t size) {
  const std::size_t vector = hn::Lanes(d) * sizeof(hn::TFromD<D>);
  const std::size_t last_offset = size - vector;
  const auto first = fold<Operator>(d, of, 0);
  const auto last = fold<Operator>(d, of, last_offset);
  const std::size_t to_aligned = -reinterpret_cast<std::uintptr_t>(of.results[0]) % vector;
  const std::size_t begin = to_aligned % ElementBytes == 0 ? to_aligned : vector;
  std::size_t i = fold_fours<Operator>(d, of, begin, size);
  for (; i < last_offset; i += vector) store_to_all(d, fold<Operator>(d, of, i), of, i);
  store_to_all(d, first, of, 0);
  store_to_all(d, last, of, last_offset);
}

// The kernel: elements of ElementLanes lanes of T each.
template <class Operator, typename T, std::size_t ElementLanes>
void reduce_all(const ManyOperands& of) {
  static constexpr std::size_t element_bytes = ElementLanes * sizeof(T);
  const hn::ScalableTag<T> d;
  const std::size_t size = of.elements * element_bytes;
  if (size > 2 * hn::Lanes(d) * sizeof(T)) return fold_many<Operator, element_bytes>(d, of, size);
  fold_few<Operator, T, ElementLanes, hn::MaxLanes(hn::ScalableTag<T>())>(of, size);
}

struct ManyOperandsFamily {
  template <class Operator, typename T, std::size_t ElementLanes = 1>
  static ManyKernel of() {
    return reduce_all<Operator, T, ElementLanes>;
  }
};

void add_many_kernels(ManyKernels& kernels) {
  add_family<ManyOperandsFamily>(kernels);
  kernels.copy = reduce_all<Copy, std::uint8_t, 1>;
}

}  // namespace plait::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"
#include "hwy/cache_control.h"

namespace plait::detail {

namespace {
constexpr Compiled<void(ManyKernels&)> compiled_kernels[] = PLAIT_COMPILED(add_many_kernels);
}

const ManyKernels& many_kernels() {
  static const ManyKernels kernels = [] {
    ManyKernels result;
    best_of(compiled_kernels)(result);
    return result;
  }();
  return kernels;
}

ManyKernels many_kernels_of(std::int64_t target) {
  ManyKernels result;
  for (const auto& compiled : compiled_kernels)
    if (compiled.target == target && compiled.function != nullptr) compiled.function(result);
  return result;
}

void end_streaming() { hwy::FlushStream(); }

}  // namespace plait::detail

#endif  // HWY_ONCE
