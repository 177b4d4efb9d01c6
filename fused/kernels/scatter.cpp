// The scattering kernels, compiled once for each instruction set with Highway. A gradient stays in the first cache
// while it is added to its bag's rows; these lie anywhere, so that those that come are fetched ahead.

#include "fused/kernels/scatter.h"

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/kernels/scatter.cpp"
#include "hwy/foreach_target.h"

#include "fused/kernels/rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::fused::detail::HWY_NAMESPACE {
namespace scattering {

namespace hn = hwy::HWY_NAMESPACE;

using rows::HWY_NAMESPACE::Bf16;
using rows::HWY_NAMESPACE::F32;
using rows::HWY_NAMESPACE::Floats;

// What is on its way from memory while a row is added to, and how many rows that may be, as for sums (pooling.cpp).
constexpr std::size_t bytes_ahead = 16 * 1024, line = 64;
constexpr std::size_t least_ahead = 4, most_ahead = 64;

template <class Row>
HWY_INLINE std::byte* row_at(const BagGradients& bags, std::int64_t at) {
  return bags.table + static_cast<std::size_t>(bags.indices[at] * bags.row_elements) * Row::bytes;
}

template <class Row>
HWY_INLINE void fetch(const BagGradients& bags, std::int64_t at) {
  const std::byte* row = row_at<Row>(bags, at);
  const std::size_t bytes = static_cast<std::size_t>(bags.columns) * Row::bytes;
  for (std::size_t byte = 0; byte < bytes; byte += line) __builtin_prefetch(row + byte, 1, 2);
}

// Rows of a vector's columns at least. The last vector overlaps the one before it where the row ends: it is made of
// what was there before, so that no column is added to twice.
template <class Row>
HWY_INLINE void add_vectors(std::byte* row, const float* gradient, std::size_t columns, float factor) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d), last = columns - lanes;
  const auto times = hn::Set(d, factor);
  const auto end = hn::MulAdd(hn::LoadU(d, gradient + last), times, Row::load(d, row + last * Row::bytes));
  for (std::size_t column = 0; column < last; column += lanes)
    Row::store(hn::MulAdd(hn::LoadU(d, gradient + column), times, Row::load(d, row + column * Row::bytes)),
               row + column * Row::bytes);
  Row::store(end, row + last * Row::bytes);
}

template <class Row>
HWY_INLINE void add_few(std::byte* row, const float* gradient, std::size_t columns, float factor) {
  for (std::size_t column = 0; column < columns; ++column) {
    std::byte* to = row + column * Row::bytes;
    Row::put(Row::element(to) + factor * gradient[column], to);
  }
}

HWY_INLINE float factor_of_bag(const BagGradients& bags, std::int64_t rows) {
  return bags.mean && rows > 0 ? bags.factor / static_cast<float>(rows) : bags.factor;
}

template <class Row, bool weighted>
void scatter(const BagGradients& bags) {
  const auto columns = static_cast<std::size_t>(bags.columns);
  const bool few = columns < hn::Lanes(Floats());
  const std::int64_t end = HWY_MAX(bags.offsets[bags.bags], bags.next_end);
  const std::size_t bytes = HWY_MAX(columns * Row::bytes, std::size_t{1});
  const auto ahead = static_cast<std::int64_t>(HWY_MIN(HWY_MAX(bytes_ahead / bytes, least_ahead), most_ahead));
  const std::byte* gradient_at = bags.gradients;
  for (std::int64_t bag = 0; bag < bags.bags; ++bag, gradient_at += bags.pitch) {
    const auto* gradient = reinterpret_cast<const float*>(gradient_at);
    const std::int64_t begin = bags.offsets[bag], bag_end = bags.offsets[bag + 1];
    float factor = factor_of_bag(bags, bag_end - begin);
    for (std::int64_t at = begin; at < bag_end; ++at) {
      if (at + ahead < end) fetch<Row>(bags, at + ahead);
      if constexpr (weighted) factor = bags.factor * bags.weights[at];
      if (few)
        add_few<Row>(row_at<Row>(bags, at), gradient, columns, factor);
      else
        add_vectors<Row>(row_at<Row>(bags, at), gradient, columns, factor);
    }
  }
}

}  // namespace scattering

void fill_scatter(ScatterKernels& kernels) {
  using namespace scattering;
  kernels = {{{scatter<F32, false>, scatter<F32, true>}, {scatter<Bf16, false>, scatter<Bf16, true>}}};
}

}  // namespace plait::fused::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"

namespace plait::fused {
namespace detail {
namespace {

using plait::detail::Compiled;
constexpr Compiled<void(ScatterKernels&)> compiled_scatter[] = PLAIT_COMPILED(fill_scatter);

ScatterKernel pick(const ScatterKernels& kernels, RowType type, bool weighted) {
  return kernels.of[static_cast<std::size_t>(type)][weighted ? 1 : 0];
}

}  // namespace
}  // namespace detail

ScatterKernel scatter_kernel(RowType type, bool weighted) {
  static const detail::ScatterKernels best = [] {
    detail::ScatterKernels kernels;
    plait::detail::best_of(detail::compiled_scatter)(kernels);
    return kernels;
  }();
  return detail::pick(best, type, weighted);
}

std::vector<TargetScatter> scatter_kernels_of_all_targets(RowType type, bool weighted) {
  std::vector<TargetScatter> kernels;
  for (const auto& compiled : detail::compiled_scatter) {
    if (!plait::detail::runs_here(compiled)) continue;
    detail::ScatterKernels filled;
    compiled.function(filled);
    kernels.push_back({hwy::TargetName(compiled.target), detail::pick(filled, type, weighted)});
  }
  return kernels;
}

}  // namespace plait::fused

#endif  // HWY_ONCE
