// Moves of blocks between ranks, one after the other: what a program comes to. A builder makes schedules of them, a
// proof follows a schedule by them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/model/block_runs.h"
#include "plan/model/collective.h"
#include "plan/model/routes.h"
#include "plan/model/schedule.h"

namespace plait::plan {

// Numbers of chunks, one after the other.
class Chunks {
 public:
  struct Iterator {
    int chunk;
    int operator*() const { return chunk; }
    Iterator& operator++() {
      ++chunk;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return chunk != other.chunk; }
  };
  Chunks(int first, int end) : first_(first), end_(end) {}
  Iterator begin() const { return {first_}; }
  Iterator end() const { return {end_}; }

 private:
  int first_, end_;
};

class BlockMoves {
 public:
  static constexpr int all_ranks = -1;

  virtual ~BlockMoves() = default;

  // The only rank whose moves are wanted: those between others may be left out.
  int only() const { return only_; }
  bool builds(int rank) const { return only_ == all_ranks || rank == only_; }

  const Semantics& semantics() const { return semantics_; }

  // Binds what crosses the network from now on to rails: the messages of chunk c to rails[c mod size]. Empty: bound to
  // none.
  void bind_chunks(std::span<const std::int8_t> rails) { rails_.assign(rails.begin(), rails.end()); }

  // The chunks that an algorithm is to work on: all, or those of the motif that is at work.
  Chunks chunks() const { return {first_chunk_, first_chunk_ + chunks_}; }
  void work_on_chunks(int first, int count) {
    first_chunk_ = first;
    chunks_ = count;
  }

  // Whether the ranks of each node can do a collective together().
  bool shared_memory() const { return routes_.shared_memory().has_value(); }

  // One message with `from`'s values of `blocks`, in that order; `to` holds them afterwards, and `from` still does.
  virtual void move(int from, int to, std::span<const BlockRun> blocks) = 0;

  // One message with `from`'s values, which `to` combines with its own, on their left or on their right.
  virtual void combine(int from, int to, std::span<const BlockRun> blocks, bool on_the_left) = 0;

  // Both directions at once: afterwards both hold the combination, with `left`'s values on the left.
  virtual void exchange(int left, int right, std::span<const BlockRun> blocks) = 0;

  // One shared-memory collective of `members`, ranks of one node that have shared memory. `pieces`: of each member
  // where has_pieces(); of an all_to_all one of each pair, giver * members + taker; else one, the whole vector. `root`:
  // index among the members. Those that reduce combine in the members' order.
  struct ShmCollectiveCall {
    ShmCollectiveKind kind;
    std::span<const int> members;
    std::size_t root = 0;
    std::span<const BlockRuns> pieces;
    std::span<const BlockRun> all = {};  // the blocks of all pieces, ascending, where that is known
  };
  virtual void together(const ShmCollectiveCall& call) = 0;

 protected:
  BlockMoves(const Semantics& semantics, Routes routes, int only)
      : semantics_(semantics), routes_(std::move(routes)), only_(only), chunks_(semantics.chunks()) {}
  BlockMoves(const BlockMoves&) = default;
  BlockMoves(BlockMoves&&) = default;

  // What carries a message of this chunk.
  ChannelKind channel(int from, int to) const { return routes_.between(from, to); }
  std::int8_t rail_of(ChannelKind channel, int chunk) const {
    if (rails_.empty() || !traits(channel).rails) return any_rail;
    return rails_[static_cast<std::size_t>(chunk) % rails_.size()];
  }

  Semantics semantics_;
  Routes routes_;

 private:
  int only_;
  int first_chunk_ = 0, chunks_ = 1;
  std::vector<std::int8_t> rails_;
};

}  // namespace plait::plan
