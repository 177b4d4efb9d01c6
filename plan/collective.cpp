#include "plan/collective.h"

#include <array>
#include <cassert>
#include <numeric>

namespace plait {

namespace {

constexpr std::array<std::string_view, collective_count> names = {
    "barrier",        "bcast",     "reduce",    "allreduce", "allgather",
    "allgatherv",     "gather",    "scatter",   "alltoall",  "reduce_scatter_block",
    "reduce_scatter", "alltoallv", "alltoallw", "gatherv",   "scatterv",
    "scan",           "exscan"};

bool chooses_segments(Collective collective) {
  return collective == Collective::barrier || collective == Collective::bcast || collective == Collective::reduce ||
         collective == Collective::allreduce;
}

int segments_of(Collective collective, int ranks, int chosen) {
  if (chooses_segments(collective)) return chosen;
  return collective == Collective::alltoall ? ranks * ranks : ranks;
}

}  // namespace

std::string_view name(Collective collective) { return names[static_cast<std::size_t>(collective)]; }

std::optional<Collective> collective_named(std::string_view wanted) {
  for (std::size_t i = 0; i < names.size(); ++i)
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

std::uint32_t Semantics::input_cells(int rank) const { return cells(input_range(rank)); }
std::uint32_t Semantics::output_cells(int rank) const { return cells(output_range(rank)); }

BlockId Semantics::input_block(int rank, std::uint32_t cell) const { return block_in(input_range(rank), cell); }
BlockId Semantics::output_block(int rank, std::uint32_t cell) const { return block_in(output_range(rank), cell); }

std::optional<std::uint32_t> Semantics::input_cell(int rank, BlockId block) const {
  return cell_in(input_range(rank), block);
}
std::optional<std::uint32_t> Semantics::output_cell(int rank, BlockId block) const {
  return cell_in(output_range(rank), block);
}

std::optional<std::uint32_t> Semantics::aliased_output(int rank, std::uint32_t input_cell) const {
  switch (collective_) {
    case Collective::barrier:
    case Collective::allreduce:
    case Collective::allgather:
    case Collective::allgatherv:
      return output_cell(rank, input_block(rank, input_cell));
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
      if (rank != root_) return std::nullopt;
      return output_cell(rank, input_block(rank, input_cell));
    default:
      return std::nullopt;
  }
}

int Semantics::origin(BlockId block) const {
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

}  // namespace plait
