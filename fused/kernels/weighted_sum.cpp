// Weighted sums of rows, compiled once for each instruction set with Highway: the sum of some columns stays in
// registers while the rows pass.

#include "fused/kernels/weighted_sum.h"

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/kernels/weighted_sum.cpp"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::fused::weighted::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Lane = hn::ScalableTag<float>;

template <int vectors>
void add_columns(const WeightedRows& rows, std::int64_t first) {
  const Lane d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<Lane> sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = hn::Zero(d);
  for (int row = 0; row < rows.count; ++row) {
    const auto weight = hn::Set(d, rows.weights[row]);
    for (int v = 0; v < vectors; ++v)
      sum[v] = hn::MulAdd(weight, hn::LoadU(d, rows.rows[row] + first + v * lanes), sum[v]);
  }
  for (int v = 0; v < vectors; ++v) hn::StoreU(sum[v], d, rows.sum + first + v * lanes);
}

void add_all(const WeightedRows& rows) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Lane()));
  std::int64_t column = 0;
  for (; column + 4 * lanes <= rows.columns; column += 4 * lanes) add_columns<4>(rows, column);
  for (; column + lanes <= rows.columns; column += lanes) add_columns<1>(rows, column);
  for (; column < rows.columns; ++column) {
    float sum = 0;
    for (int row = 0; row < rows.count; ++row) sum += rows.weights[row] * rows.rows[row][column];
    rows.sum[column] = sum;
  }
}

void fill(WeightedSum& kernel) { kernel = add_all; }

}  // namespace plait::fused::weighted::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"

namespace plait::fused {
namespace weighted {
namespace {

constexpr plait::detail::Compiled<void(WeightedSum&)> compiled_sums[] = PLAIT_COMPILED(fill);

}  // namespace
}  // namespace weighted

WeightedSum weighted_sum() {
  WeightedSum kernel = nullptr;
  plait::detail::best_of(weighted::compiled_sums)(kernel);
  return kernel;
}

std::vector<TargetWeightedSum> weighted_sums_of_all_targets() {
  std::vector<TargetWeightedSum> found;
  for (const auto& compiled : weighted::compiled_sums) {
    if (!plait::detail::runs_here(compiled)) continue;
    WeightedSum kernel = nullptr;
    compiled.function(kernel);
    found.push_back({hwy::TargetName(compiled.target), kernel});
  }
  return found;
}

}  // namespace plait::fused

#endif  // HWY_ONCE
