// The vector kernels of two operands, compiled once for each instruction set with Highway. One loop
// serves all operators, and short counts and the ends of arrays go through the same operator with
// narrower or overlapping vectors.

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels.cpp"
#include "hwy/foreach_target.h"

#include "core/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plait::detail::HWY_NAMESPACE {

// ---- The loop ----

struct Operands {
  std::uint8_t* result;
  const std::uint8_t* left;
  const std::uint8_t* right;
};

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

struct TwoOperands {
  template <class Operator, typename T, std::size_t ElementLanes = 1>
  static ReduceKernel of() {
    return reduce<Operator, T, ElementLanes>;
  }
};

void add_vector_kernels(KernelTable& table) { add_family<TwoOperands>(table); }

}  // namespace plait::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"

namespace plait::detail {

namespace {
constexpr Compiled<void(KernelTable&)> compiled_kernels[] = PLAIT_COMPILED(add_vector_kernels);
}

const KernelTable& kernel_table() {
  static const KernelTable table = [] {
    KernelTable result;
    add_scalar_kernels(result);
    best_of(compiled_kernels)(result);
    return result;
  }();
  return table;
}

std::vector<TargetKernels> kernel_tables_of_all_targets() {
  std::vector<TargetKernels> tables;
  for (const auto& compiled : compiled_kernels) {
    if (!runs_here(compiled)) continue;
    TargetKernels& added =
        tables.emplace_back(TargetKernels{hwy::TargetName(compiled.target), {}, many_kernels_of(compiled.target)});
    add_scalar_kernels(added.table);
    compiled.function(added.table);
  }
  return tables;
}

}  // namespace plait::detail

#endif  // HWY_ONCE
