// Turns an algorithm, written as moves between ranks, into the schedules of all ranks.
//
// An algorithm says who sends which blocks to whom; the builder knows where each rank holds each block (its input, its
// output or scratch), adds the order that the data needs (read after write, write after read, write after write), and
// brings every result to its output at the end. Steps whose data is independent stay unordered, so that a plan over
// many chunks is a pipeline without further ado.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/model/routes.h"
#include "plan/model/schedule.h"

namespace plait::plan {

// All ranks' schedules of one plan, by rank.
struct LoweredPlan {
  Semantics semantics;
  std::vector<Schedule> schedules;
};

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

class Builder {
 public:
  Builder(const Semantics& semantics, Routes routes);

  // Binds what crosses the network from now on to rails: the messages of chunk c to rails[c mod size]. Empty: bound to
  // none.
  void bind_chunks(std::span<const std::int8_t> rails) { rails_.assign(rails.begin(), rails.end()); }

  // From now on a rank's messages over the network to one peer wait until those to others that come before them are
  // sent, so that its NIC serves the moves in their order.
  void keep_order_of_sends() { last_sends_.resize(ranks_.size()); }

  // Messages over the network of a series of rounds: until the next call a rank sends nothing before its messages of
  // the series' round before, in and out, are through, so that only so many ranks at a time send to one. Series do not
  // wait for each other. end_rounds(): what follows belongs to none.
  void begin_round(int series);
  void end_rounds() { series_ = -1; }

  // Steps from now on are of this part of the plan (Schedule::parts); those that finish() adds are of the one behind
  // the last.
  void begin_part(int part);

  const Semantics& semantics() const { return semantics_; }

  // The chunks that an algorithm is to work on: all, or those of the motif that is at work.
  Chunks chunks() const { return {first_chunk_, first_chunk_ + chunks_}; }
  void work_on_chunks(int first, int count) {
    first_chunk_ = first;
    chunks_ = count;
  }

  // Whether the ranks of each node can do a collective together().
  bool shared_memory() const { return routes_.shared_memory().has_value(); }

  // One message with `from`'s values of `blocks`, in that order; `to` holds them afterwards, and `from` still does.
  void move(int from, int to, std::span<const BlockId> blocks);

  // One message with `from`'s values, which `to` combines with its own.
  void combine(int from, int to, std::span<const BlockId> blocks);

  // Both directions at once: afterwards both hold the combination.
  void exchange(int one, int other, std::span<const BlockId> blocks);

  // One shared-memory collective of `members`, ranks of one node that have shared memory. `pieces`: of each member
  // where has_pieces(); of an all_to_all one of each pair, giver * members + taker; else one, the whole vector. `root`:
  // index among the members.
  struct ShmCollectiveCall {
    ShmCollectiveKind kind;
    std::span<const int> members;
    std::size_t root = 0;
    std::span<const std::vector<BlockId>> pieces;
  };
  void together(const ShmCollectiveCall& call);

  // Brings every result to its output cell. Fails when a rank never got one.
  Result<LoweredPlan> finish();

 private:
  // Where a rank holds its value of a block, and the lowest rank that contributed to it (the operator's operands are
  // put in the order of their lowest contributors, so that all ranks compute the same bits).
  struct Holding {
    Space space = Space::input;
    bool present = false;
    std::uint32_t cell = 0;
    std::int32_t lowest = 0;
  };
  // The accesses of one storage cell that later accesses may conflict with.
  struct Storage {
    std::int32_t writer = -1;
    std::int32_t readers = -1;  // head of a list in reader_pool_
  };
  struct Reader {
    std::uint32_t step;
    std::int32_t next;
  };
  struct RankState {
    Schedule schedule;
    std::vector<Holding> holdings;  // by block
    std::vector<Storage> storage;   // input cells, then output cells, then scratch cells
    std::uint32_t input_cells = 0, output_cells = 0;
  };

  // A rank's latest message over the network, and the latest one to a peer other than that one's.
  struct LastSends {
    std::int32_t peer = -1, step = -1, step_to_other = -1;
  };

  // A rank's messages over the network in a series' latest round, and in the one before.
  struct Round {
    std::vector<std::int32_t> now, before;
  };

  enum class Arrival { overwrite, combine, combine_elsewhere };

  std::int8_t rail_of(ChannelKind channel, BlockId block) const;
  Holding& holding(int rank, BlockId block) { return ranks_[static_cast<std::size_t>(rank)].holdings[block]; }
  std::uint32_t storage_of(int rank, Space space, std::uint32_t cell) const;
  Holding landing_place(int rank, BlockId block);
  Holding combining_place(int rank, BlockId block, Arrival arrival);
  Holding new_scratch(int rank, BlockId block);
  RunList append_runs(int rank, std::span<const BlockId> blocks, const std::vector<Holding>& where);
  std::vector<Holding> holdings_of(int rank, std::span<const BlockId> blocks);

  void add_send(int rank, int to, std::span<const BlockId> blocks, const std::vector<Holding>& from);
  void add_receive(int rank, int from, std::span<const BlockId> blocks, int lowest_incoming, Arrival arrival);
  void add_copy(int rank, std::span<const BlockId> blocks);

  // What one member of a shared-memory collective gives and gets, and where that lies.
  struct ShmCollectivePart {
    std::vector<BlockId> gives, gets;
    std::vector<Holding> from, to;
    bool takes_own = true;
  };
  std::vector<std::size_t> combining_order(const ShmCollectiveCall& call);
  void add_shm_collectives(const ShmCollectiveCall& call);
  void add_shm_collective(const ShmCollectiveCall& call, std::size_t member, const ShmCollectivePart& part);
  std::vector<BlockId> given(const ShmCollectiveCall& call, std::size_t member) const;
  std::vector<BlockId> taken(const ShmCollectiveCall& call, std::size_t member, bool& takes_own);
  Holding taking_place(int rank, BlockId block, bool reduces);

  void reads(int rank, const Holding& where);
  void writes(int rank, const Holding& where);
  void depend_on(std::int32_t step);
  void order_send(int rank, const Step& step);
  void keep_to_round(int rank, const Step& step);
  void finish_step(int rank, Step step, const std::vector<Holding>& read, const std::vector<Holding>& written);
  void record_accesses(int rank, const std::vector<Holding>& read, const std::vector<Holding>& written);

  Semantics semantics_;
  Routes routes_;
  int first_chunk_ = 0, chunks_ = 1;
  std::vector<std::int8_t> rails_;
  std::vector<RankState> ranks_;
  std::vector<Reader> reader_pool_;
  std::vector<std::uint32_t> pending_after_;
  std::vector<LastSends> last_sends_;         // by rank; empty: the order is free
  std::map<int, std::vector<Round>> rounds_;  // by series, by rank
  int series_ = -1;                           // at work; -1: none
  int part_ = -1, parts_ = 0;                 // at work; -1: the plan has none
};

}  // namespace plait::plan
