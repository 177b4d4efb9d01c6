// The pooling kernels, compiled once for each instruction set with Highway. A bag's sum stays in registers while its
// rows pass, as many columns at once as registers hold; rows lie anywhere, so that those that come are fetched ahead.

#include "fused/kernels/pooling.h"

#include "core/kernel_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fused/kernels/pooling.cpp"
#include "hwy/foreach_target.h"

#include "fused/kernels/rows-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plait::fused::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using rows::HWY_NAMESPACE::Bf16;
using rows::HWY_NAMESPACE::F32;
using rows::HWY_NAMESPACE::Floats;
using rows::HWY_NAMESPACE::I8;

// Vectors of a sum that registers hold, beside what a row needs.
constexpr std::size_t most_vectors = HWY_TARGET == HWY_AVX3 ? 16 : 8;

// What is on its way from memory while a row is added, and how many rows that may be. Measured (docs/fused.md): into
// the second-level cache, which has more reads under way than the first.
constexpr std::size_t bytes_ahead = 16 * 1024;
constexpr std::size_t least_ahead = 4, most_ahead = 64;

// ---- What a row counts ----

// Whether rows have factors of their own, and where these come from.
template <class Row, bool weighted>
struct Factor {
  static constexpr bool any = weighted || std::is_same_v<Row, I8>;
  static HWY_INLINE float of(const Bags& bags, std::int64_t at) {
    float factor = 1;
    if constexpr (std::is_same_v<Row, I8>) factor = bags.scales[bags.indices[at]];
    if constexpr (weighted) factor *= bags.weights[at];
    return factor;
  }
};

HWY_INLINE float share_of_mean(const Bags& bags, std::int64_t rows) {
  return bags.mean && rows > 0 ? 1.0f / static_cast<float>(rows) : 1.0f;
}

// ---- Sums ----

template <class Row>
HWY_INLINE const std::byte* row_at(const Bags& bags, std::int64_t at) {
  return bags.table + static_cast<std::size_t>(bags.indices[at] * bags.columns) * Row::bytes;
}

HWY_INLINE void fetch_line(const void* address) { __builtin_prefetch(address, 0, 2); }

// Bytes [from, from + bytes) of a row that comes in a while.
template <class Row>
HWY_INLINE void fetch(const Bags& bags, std::int64_t at, std::size_t from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  const std::byte* row = row_at<Row>(bags, at) + from;
  for (std::size_t byte = 0; byte < bytes; byte += line) fetch_line(row + byte);
  if constexpr (std::is_same_v<Row, I8>) fetch_line(bags.scales + bags.indices[at]);
}

// Some columns of all bags: `vectors` of them from `first` on, or fewer where the row ends: then the last ones overlap,
// as whole vectors are added. Precondition: a row has a vector's columns at least.
template <class Row, bool weighted, std::size_t vectors>
void sum_columns(const Bags& bags, std::size_t first) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d), last = static_cast<std::size_t>(bags.columns) - lanes;
  std::size_t column[vectors];
  for (std::size_t v = 0; v < vectors; ++v) column[v] = HWY_MIN(first + v * lanes, last);
  const std::size_t from = first * Row::bytes;
  const std::size_t bytes = (column[vectors - 1] + lanes) * Row::bytes - from;
  const std::int64_t end = HWY_MAX(bags.offsets[bags.bags], bags.next_end);
  const auto ahead = static_cast<std::int64_t>(HWY_MIN(HWY_MAX(bytes_ahead / bytes, least_ahead), most_ahead));
  std::byte* sum_at = bags.sums;
  for (std::int64_t bag = 0; bag < bags.bags; ++bag, sum_at += bags.pitch) {
    const std::int64_t begin = bags.offsets[bag], bag_end = bags.offsets[bag + 1];
    hn::Vec<Floats> sum[vectors];
    for (std::size_t v = 0; v < vectors; ++v) sum[v] = hn::Zero(d);
    for (std::int64_t at = begin; at < bag_end; ++at) {
      if (at + ahead < end) fetch<Row>(bags, at + ahead, from, bytes);
      const std::byte* row = row_at<Row>(bags, at);
      if constexpr (Factor<Row, weighted>::any) {
        const auto factor = hn::Set(d, Factor<Row, weighted>::of(bags, at));
        for (std::size_t v = 0; v < vectors; ++v)
          sum[v] = hn::MulAdd(Row::load(d, row + column[v] * Row::bytes), factor, sum[v]);
      } else {
        for (std::size_t v = 0; v < vectors; ++v) sum[v] = hn::Add(sum[v], Row::load(d, row + column[v] * Row::bytes));
      }
    }
    const auto share = hn::Set(d, share_of_mean(bags, bag_end - begin));
    float* to = reinterpret_cast<float*>(sum_at);
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(hn::Mul(sum[v], share), d, to + column[v]);
  }
}

// Rows of fewer columns than a vector has lanes.
template <class Row, bool weighted>
void sum_few(const Bags& bags) {
  std::byte* sum_at = bags.sums;
  for (std::int64_t bag = 0; bag < bags.bags; ++bag, sum_at += bags.pitch) {
    const std::int64_t begin = bags.offsets[bag], end = bags.offsets[bag + 1];
    const float share = share_of_mean(bags, end - begin);
    for (std::int64_t column = 0; column < bags.columns; ++column) {
      float sum = 0;
      for (std::int64_t at = begin; at < end; ++at)
        sum += Row::element(row_at<Row>(bags, at) + static_cast<std::size_t>(column) * Row::bytes) *
               Factor<Row, weighted>::of(bags, at);
      reinterpret_cast<float*>(sum_at)[column] = sum * share;
    }
  }
}

template <class Row, bool weighted>
void sum_some(const Bags& bags, std::size_t first, std::size_t vectors) {
  if constexpr (most_vectors == 16) {
    if (vectors > 12) return sum_columns<Row, weighted, 16>(bags, first);
    if (vectors > 8) return sum_columns<Row, weighted, 12>(bags, first);
  }
  if (vectors > 6) return sum_columns<Row, weighted, 8>(bags, first);
  if (vectors > 4) return sum_columns<Row, weighted, 6>(bags, first);
  if (vectors > 2) return sum_columns<Row, weighted, 4>(bags, first);
  if (vectors > 1) return sum_columns<Row, weighted, 2>(bags, first);
  return sum_columns<Row, weighted, 1>(bags, first);
}

template <class Row, bool weighted>
void pool(const Bags& bags) {
  const std::size_t lanes = hn::Lanes(Floats()), columns = static_cast<std::size_t>(bags.columns);
  if (columns < lanes) return sum_few<Row, weighted>(bags);
  const std::size_t vectors = (columns + lanes - 1) / lanes;
  for (std::size_t done = 0; done < vectors; done += most_vectors)
    sum_some<Row, weighted>(bags, done * lanes, HWY_MIN(vectors - done, most_vectors));
}

void fill(PoolingKernels& kernels) {
  kernels = {
      {{pool<F32, false>, pool<F32, true>}, {pool<Bf16, false>, pool<Bf16, true>}, {pool<I8, false>, pool<I8, true>}}};
}

}  // namespace plait::fused::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "core/kernel_dispatch.h"

namespace plait::fused {
namespace detail {
namespace {

using plait::detail::Compiled;
constexpr Compiled<void(PoolingKernels&)> compiled_pooling[] = PLAIT_COMPILED(fill);

PoolingKernel pick(const PoolingKernels& kernels, RowType type, bool weighted) {
  return kernels.of[static_cast<std::size_t>(type)][weighted ? 1 : 0];
}

}  // namespace
}  // namespace detail

std::string_view name(RowType type) {
  constexpr std::string_view names[] = {"f32", "bf16", "i8"};
  return names[static_cast<std::size_t>(type)];
}

std::size_t bytes_of(RowType type) { return std::size_t{4} >> static_cast<unsigned>(type); }

PoolingKernel pooling_kernel(RowType type, bool weighted) {
  static const detail::PoolingKernels best = [] {
    detail::PoolingKernels kernels;
    plait::detail::best_of(detail::compiled_pooling)(kernels);
    return kernels;
  }();
  return detail::pick(best, type, weighted);
}

std::vector<TargetPooling> pooling_kernels_of_all_targets(RowType type, bool weighted) {
  std::vector<TargetPooling> kernels;
  for (const auto& compiled : detail::compiled_pooling) {
    if (!plait::detail::runs_here(compiled)) continue;
    detail::PoolingKernels filled;
    compiled.function(filled);
    kernels.push_back({hwy::TargetName(compiled.target), detail::pick(filled, type, weighted)});
  }
  return kernels;
}

}  // namespace plait::fused

#endif  // HWY_ONCE
