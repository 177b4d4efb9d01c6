#include "plan/model/collective.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

namespace plait::plan {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Collective::count_)> names = {"barrier",
                                                                                              "bcast",
                                                                                              "reduce",
                                                                                              "allreduce",
                                                                                              "allgather",
                                                                                              "allgatherv",
                                                                                              "gather",
                                                                                              "scatter",
                                                                                              "alltoall",
                                                                                              "reduce_scatter_block",
                                                                                              "reduce_scatter",
                                                                                              "alltoallv",
                                                                                              "alltoallw",
                                                                                              "gatherv",
                                                                                              "scatterv",
                                                                                              "scan",
                                                                                              "exscan",
                                                                                              "neighbor_allgather",
                                                                                              "neighbor_allgatherv",
                                                                                              "neighbor_alltoall",
                                                                                              "neighbor_alltoallv",
                                                                                              "neighbor_alltoallw",
                                                                                              "reshard"};

bool chooses_segments(Collective collective) {
  return collective == Collective::barrier || collective == Collective::bcast || collective == Collective::reduce ||
         collective == Collective::allreduce;
}

int segments_of(Collective collective, int ranks, int chosen) {
  if (chooses_segments(collective)) return chosen;
  return collective == Collective::alltoall ? ranks * ranks : ranks;
}

using BlockLists = std::vector<std::vector<BlockId>>;

const std::vector<BlockId>& of_rank(const BlockLists& lists, int rank) { return lists[static_cast<std::size_t>(rank)]; }

std::uint32_t size_of(const BlockLists& lists, int rank) {
  return static_cast<std::uint32_t>(of_rank(lists, rank).size());
}

std::optional<std::uint32_t> find(const std::vector<BlockId>& ascending, BlockId block) {
  const auto found = std::ranges::lower_bound(ascending, block);
  if (found == ascending.end() || *found != block) return std::nullopt;
  return static_cast<std::uint32_t>(found - ascending.begin());
}

}  // namespace

std::string_view name(Collective collective) { return names[static_cast<std::size_t>(collective)]; }

std::optional<Collective> collective_named(std::string_view wanted) {
  for (std::size_t i = 0; i < collective_count; ++i)
    if (names[i] == wanted) return static_cast<Collective>(i);
  return std::nullopt;
}

bool reduces(Collective collective) {
  switch (collective) {
    case Collective::barrier:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::reduce_scatter_block:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::exscan:
      return true;
    default:
      return false;
  }
}

bool rooted(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter || collective == Collective::gatherv || collective == Collective::scatterv;
}

bool counts_parts(Collective collective) {
  switch (collective) {
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::gather:
    case Collective::scatter:
    case Collective::reduce_scatter_block:
    case Collective::scan:
    case Collective::exscan:
      return true;
    default:
      return false;
  }
}

std::size_t payload_bytes(const Call& call, int ranks) {
  if (call.counts == nullptr) return call.count * call.element_bytes;
  return std::accumulate(call.counts, call.counts + ranks, std::size_t{0}) * call.element_bytes;
}

Semantics::Semantics(Collective collective, int ranks, int root, int segments, int chunks)
    : collective_(collective),
      ranks_(ranks),
      root_(root),
      segments_(segments_of(collective, ranks, segments)),
      chunks_(chunks) {
  assert(ranks > 0 && root >= 0 && root < ranks && segments_ > 0 && chunks > 0);
}

Semantics::Semantics(std::shared_ptr<const BlockOwners> owners)
    : collective_(Collective::reshard),
      ranks_(static_cast<int>(owners->inputs.size())),
      root_(0),
      segments_(static_cast<int>(owners->blocks)),
      chunks_(1),
      owners_(std::move(owners)) {}

Semantics::Range Semantics::input_range(int rank) const {
  switch (collective_) {
    case Collective::bcast:
    case Collective::scatter:
      return {0, rank == root_ ? segments_ : 0, 1};
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
      return {rank, 1, 1};
    case Collective::alltoall:
      return {rank * ranks_, ranks_, 1};
    default:
      return {0, segments_, 1};
  }
}

Semantics::Range Semantics::output_range(int rank) const {
  switch (collective_) {
    case Collective::bcast:
      return {0, rank == root_ ? 0 : segments_, 1};
    case Collective::reduce:
    case Collective::gather:
      return {0, rank == root_ ? segments_ : 0, 1};
    case Collective::scatter:
    case Collective::reduce_scatter_block:
    case Collective::reduce_scatter:
      return {rank, 1, 1};
    case Collective::alltoall:
      return {rank, ranks_, ranks_};
    default:
      return {0, segments_, 1};
  }
}

std::uint32_t Semantics::cells(const Range& range) const {
  return static_cast<std::uint32_t>(range.segment_count) * static_cast<std::uint32_t>(chunks_);
}

BlockId Semantics::block_in(const Range& range, std::uint32_t cell) const {
  const auto chunks = static_cast<std::uint32_t>(chunks_);
  const int segment = range.first_segment + static_cast<int>(cell / chunks) * range.stride;
  return block(segment, static_cast<int>(cell % chunks));
}

std::optional<std::uint32_t> Semantics::cell_in(const Range& range, BlockId block) const {
  const auto chunks = static_cast<std::uint32_t>(chunks_);
  const int offset = static_cast<int>(block / chunks) - range.first_segment;
  if (offset < 0 || offset % range.stride != 0 || offset / range.stride >= range.segment_count) return std::nullopt;
  return static_cast<std::uint32_t>(offset / range.stride) * chunks + block % chunks;
}

std::uint32_t Semantics::input_cells(int rank) const {
  return owners_ != nullptr ? size_of(owners_->inputs, rank) : cells(input_range(rank));
}
std::uint32_t Semantics::output_cells(int rank) const {
  return owners_ != nullptr ? size_of(owners_->outputs, rank) : cells(output_range(rank));
}

BlockId Semantics::input_block(int rank, std::uint32_t cell) const {
  return owners_ != nullptr ? of_rank(owners_->inputs, rank)[cell] : block_in(input_range(rank), cell);
}
BlockId Semantics::output_block(int rank, std::uint32_t cell) const {
  return owners_ != nullptr ? of_rank(owners_->outputs, rank)[cell] : block_in(output_range(rank), cell);
}

std::optional<std::uint32_t> Semantics::input_cell(int rank, BlockId block) const {
  return owners_ != nullptr ? find(of_rank(owners_->inputs, rank), block) : cell_in(input_range(rank), block);
}
std::optional<std::uint32_t> Semantics::output_cell(int rank, BlockId block) const {
  return owners_ != nullptr ? find(of_rank(owners_->outputs, rank), block) : cell_in(output_range(rank), block);
}

namespace {

Segments runs_of(const std::vector<BlockId>& ascending) {
  Segments segments;
  for (const BlockId block : ascending) append(segments, {static_cast<int>(block), 1});
  return segments;
}

Semantics::Stretch stretch_in(const std::vector<BlockId>& ascending, const BlockRun& run) {
  const auto found = std::ranges::lower_bound(ascending, static_cast<BlockId>(run.first));
  if (found == ascending.end()) return {run.count, std::nullopt};
  const int gap = static_cast<int>(*found) - run.first;
  if (gap > 0) return {std::min(gap, run.count), std::nullopt};
  int count = 1;
  while (count < run.count && found + count != ascending.end() && found[count] == *found + static_cast<BlockId>(count))
    ++count;
  return {count, static_cast<std::uint32_t>(found - ascending.begin())};
}

}  // namespace

Segments Semantics::segments_in(const Range& range) {
  Segments segments;
  if (range.stride == 1 && range.segment_count > 0) return {{range.first_segment, range.segment_count}};
  for (int i = 0; i < range.segment_count; ++i) append(segments, {range.first_segment + i * range.stride, 1});
  return segments;
}

Segments Semantics::input_segments(int rank) const {
  return owners_ != nullptr ? runs_of(of_rank(owners_->inputs, rank)) : segments_in(input_range(rank));
}
Segments Semantics::output_segments(int rank) const {
  return owners_ != nullptr ? runs_of(of_rank(owners_->outputs, rank)) : segments_in(output_range(rank));
}

Semantics::Stretch Semantics::output_stretch(int rank, const BlockRun& run) const {
  if (owners_ != nullptr) return stretch_in(of_rank(owners_->outputs, rank), run);
  const Range range = output_range(rank);
  const int offset = run.first - range.first_segment, end = (range.segment_count - 1) * range.stride + 1;
  if (offset < 0) return {std::min(-offset, run.count), std::nullopt};
  if (offset >= end) return {run.count, std::nullopt};
  if (const int behind = offset % range.stride; behind != 0)
    return {std::min(range.stride - behind, run.count), std::nullopt};
  return {range.stride == 1 ? std::min(end - offset, run.count) : 1, cell_in(range, block(run.first, run.chunk))};
}

bool Semantics::aliases(int rank) const {
  switch (collective_) {
    case Collective::barrier:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::allgatherv:
      return true;
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
      return rank == root_;
    default:
      return false;
  }
}

std::optional<std::uint32_t> Semantics::aliased_output(int rank, std::uint32_t input_cell) const {
  return aliases(rank) ? output_cell(rank, input_block(rank, input_cell)) : std::nullopt;
}

int Semantics::origin(BlockId block) const {
  if (owners_ != nullptr) return owners_->origin[block];
  const int segment = static_cast<int>(block / static_cast<std::uint32_t>(chunks_));
  switch (collective_) {
    case Collective::bcast:
    case Collective::scatter:
      return root_;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather:
      return segment;
    case Collective::alltoall:
      return segment / ranks_;
    default:
      return -1;
  }
}

}  // namespace plait::plan
