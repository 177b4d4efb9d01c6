// What a collective call asks for, independent of MPI, and what it must achieve, in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/block_runs.h"

namespace plait::plan {

enum class Collective : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  allgather,
  allgatherv,
  gather,
  scatter,
  alltoall,
  reduce_scatter_block,
  reduce_scatter,
  // No plans are made for these: they run on those of the others.
  alltoallv,
  alltoallw,
  gatherv,
  scatterv,
  scan,
  exscan,
  // On the neighbours that a communicator's topology gives each rank (plan/neighbor).
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  reshard,  // none of MPI's (plan/reshard)
  count_,
};
inline constexpr int collective_count = static_cast<int>(Collective::reshard);       // MPI's
inline constexpr int planned_collectives = static_cast<int>(Collective::alltoallv);  // the first ones
inline bool planned(Collective collective) { return static_cast<int>(collective) < planned_collectives; }
// Lengths are known only to the two ranks that exchange the data.
inline bool by_pairs(Collective collective) {
  return collective >= Collective::alltoallv && collective <= Collective::scatterv;
}
inline bool on_neighbors(Collective collective) {
  return collective >= Collective::neighbor_allgather && collective <= Collective::neighbor_alltoallw;
}
// Each rank's data are pieces of lengths of their own.
inline bool lies_in_pieces(Collective collective) { return by_pairs(collective) || on_neighbors(collective); }

std::string_view name(Collective collective);  // "allreduce"
std::optional<Collective> collective_named(std::string_view name);
bool reduces(Collective collective);  // barrier counts as a reduction of nothing
bool rooted(Collective collective);
bool counts_parts(Collective collective);  // a call's count is that of one rank's part, of which each rank has one

// One call, described only by what MPI guarantees to be equal on all ranks of the communicator.
struct Call {
  Collective collective = Collective::barrier;
  int root = 0;  // of a rooted collective
  // Elements: of the vector (bcast, reduce, allreduce), of one rank's contribution (allgather, gather), of one rank's
  // share (scatter, reduce_scatter_block), of one pair's message (alltoall, neighbor_alltoall; and
  // of neighbor_allgather). 0 for barrier.
  std::size_t count = 0;
  // allgatherv and reduce_scatter: elements of each rank's segment, by rank; empty for the others. Not owned.
  const std::size_t* counts = nullptr;
  // Bytes of an element in the packed form in which it travels; data is cut only between elements. 0 for barrier.
  std::size_t element_bytes = 1;
  bool commutative = true;  // of the operator; true where there is none
};

// Bytes that name the size of a call: the count's times element_bytes; the sum of the counts for the v-collectives.
std::size_t payload_bytes(const Call& call, int ranks);

using BlockId = std::uint32_t;
// An alltoall has a segment a pair, and segments are numbered by an int.
inline constexpr int most_alltoall_ranks = 46340;

// Which blocks each rank has and gets, where no rule says so (reshardings, exchanges of neighbours).
struct BlockOwners {
  BlockId blocks = 0;
  std::vector<std::vector<BlockId>> inputs, outputs;  // by rank, ascending
  std::vector<int> origin;                            // by block: one of the ranks that have it
};

// A collective's data as a plan sees it: `segments`, each cut into `chunks`; block = segment * chunks + chunk.
// Segments are: equal parts of the vector (barrier, bcast, reduce, allreduce: the plan chooses how many); one a rank
// (allgather(v), gather, scatter, reduce_scatter(_block)); one a pair, source * ranks + destination (alltoall).
//
// A rank's input and output are arrays of cells, a block each, in ascending order of block:
//   barrier, allreduce     input all blocks              output all
//   reduce                 input all                     output all at the root
//   bcast                  input all at the root         output all elsewhere
//   allgather(v)           input own segment             output all
//   gather                 input own segment             output all at the root
//   scatter                input all at the root         output own segment
//   reduce_scatter(_block) input all                     output own segment
//   alltoall               input own row (by dest.)      output own column (by source)
//   reshard                as BlockOwners says
class Semantics {
 public:
  // `segments` matters only for the collectives whose plan chooses it.
  Semantics(Collective collective, int ranks, int root, int segments, int chunks);
  // Collective::reshard, whatever it is that says who has what; one chunk.
  explicit Semantics(std::shared_ptr<const BlockOwners> owners);

  Collective collective() const { return collective_; }
  int ranks() const { return ranks_; }
  int root() const { return root_; }
  int segments() const { return segments_; }
  int chunks() const { return chunks_; }
  BlockId blocks() const { return static_cast<BlockId>(segments_) * static_cast<BlockId>(chunks_); }
  BlockId block(int segment, int chunk) const {
    return static_cast<BlockId>(segment) * static_cast<BlockId>(chunks_) + static_cast<BlockId>(chunk);
  }

  std::uint32_t input_cells(int rank) const;
  std::uint32_t output_cells(int rank) const;
  BlockId input_block(int rank, std::uint32_t cell) const;
  BlockId output_block(int rank, std::uint32_t cell) const;
  std::optional<std::uint32_t> input_cell(int rank, BlockId block) const;
  std::optional<std::uint32_t> output_cell(int rank, BlockId block) const;

  // The same of many blocks at once, in ascending order.
  Segments input_segments(int rank) const;
  Segments output_segments(int rank) const;
  // The first `count` blocks of a run: of none of them is the output, or their cells lie `chunks()` apart from `cell`
  // on (of a reshard, side by side).
  struct Stretch {
    int count;
    std::optional<std::uint32_t> cell;
  };
  Stretch output_stretch(int rank, const BlockRun& run) const;

  // Whether aliased_output() is the output cell of the same block, where there is one; else it is none.
  bool aliases(int rank) const;

  // With MPI_IN_PLACE (or by the nature of the call) this input cell is the same memory as that output cell. Where MPI
  // lets the two overlap otherwise (alltoall, reduce_scatter) the caller copies the input first and nothing is shared.
  std::optional<std::uint32_t> aliased_output(int rank, std::uint32_t input_cell) const;

  // The rank whose input alone makes up the block, or (reshard) one of those that have it; -1 when every rank
  // contributes (reductions).
  int origin(BlockId block) const;

 private:
  struct Range {
    int first_segment, segment_count, stride;
  };
  Range input_range(int rank) const;
  Range output_range(int rank) const;
  static Segments segments_in(const Range& range);
  std::uint32_t cells(const Range& range) const;
  BlockId block_in(const Range& range, std::uint32_t cell) const;
  std::optional<std::uint32_t> cell_in(const Range& range, BlockId block) const;

  Collective collective_;
  int ranks_;
  int root_;
  int segments_;
  int chunks_;
  std::shared_ptr<const BlockOwners> owners_;  // of a reshard
};

}  // namespace plait::plan
