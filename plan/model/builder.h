// Turns an algorithm, written as moves between ranks, into the schedules of all ranks, or of one.
//
// An algorithm says who sends which blocks to whom; the builder knows where each rank holds each block (its input, its
// output or scratch), adds the order that the data needs (read after write, write after read, write after write), and
// brings every result to its output at the end. Steps whose data is independent stay unordered, so that a plan over
// many chunks is a pipeline without further ado.
//
// What a rank holds depends on its own moves alone, and so does its schedule: who wants only one rank's may leave out
// the moves between others. Of all moves that concern two ranks the order must be the same whoever is asked for, so
// that the k-th send meets the k-th receive.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/model/block_moves.h"
#include "plan/model/block_runs.h"
#include "plan/model/collective.h"
#include "plan/model/routes.h"
#include "plan/model/schedule.h"

namespace plait::plan {

// All ranks' schedules of one plan, by rank.
struct LoweredPlan {
  Semantics semantics;
  std::vector<Schedule> schedules;
};

// One rank's.
struct OwnPlan {
  Semantics semantics;
  Schedule schedule;
};

class Builder final : public BlockMoves {
 public:
  // `only`: whose schedule is wanted.
  Builder(const Semantics& semantics, Routes routes, int only = all_ranks);

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

  void move(int from, int to, std::span<const BlockRun> blocks) override;
  void combine(int from, int to, std::span<const BlockRun> blocks, bool on_the_left) override;
  void exchange(int left, int right, std::span<const BlockRun> blocks) override;
  void together(const ShmCollectiveCall& call) override;

  // The same with blocks one by one.
  void move(int from, int to, std::span<const BlockId> blocks) { move(from, to, runs_of(blocks)); }
  void exchange(int left, int right, std::span<const BlockId> blocks) { exchange(left, right, runs_of(blocks)); }

  // Brings every result to its output cell. Fails when a rank never got one, or gave what it did not have.
  Result<LoweredPlan> finish();
  // Precondition: only one rank's schedule is wanted.
  Result<OwnPlan> finish_own();

 private:
  // The accesses of a storage cell that later accesses may conflict with.
  struct Storage {
    std::int32_t writer = -1;
    std::int32_t readers = -1;  // head of a list in reader_pool_
  };
  struct Reader {
    std::uint32_t step;
    std::int32_t next;
  };
  // Where a rank holds its values of the blocks of one chunk and some consecutive segments, which have had the same
  // history so far, and who touched their cells: the input's, the output's and the scratch memory's. An input cell that
  // may be the same memory as an output cell (in place) is tracked as that, so that the order holds in both cases.
  struct Part {
    int count = 0;
    bool present = false;
    bool aliased = false;  // input and output share their memory
    Space space = Space::input;
    std::uint32_t cell = 0;  // of the first; the others' follow each cells_apart()
    std::array<Storage, 3> storage{};

    Storage& of(Space which) {
      return storage[static_cast<std::size_t>(which == Space::input && aliased ? Space::output : which)];
    }
  };
  using Parts = std::map<int, Part>;  // by first segment
  struct RankState {
    Schedule schedule;
    std::vector<Parts> parts;  // by chunk
  };

  // A rank's latest message over the network, and the latest one to a peer other than that one's.
  struct LastSends {
    std::int32_t peer = -1, step = -1, step_to_other = -1;
  };

  // A rank's messages over the network in a series' latest round, and in the one before.
  struct Round {
    std::vector<std::int32_t> now, before;
  };

  struct Arrival {
    enum Kind { overwrite, combine, combine_elsewhere } kind = overwrite;
    bool on_the_left = false;  // of what is there
  };

  BlockRuns runs_of(std::span<const BlockId> blocks) const;
  std::size_t index_of(int rank) const { return only() == all_ranks ? static_cast<std::size_t>(rank) : 0; }
  RankState& state_of(int rank) { return ranks_[index_of(rank)]; }
  std::uint32_t cells_apart(Space space) const {
    return space == Space::scratch ? 1 : static_cast<std::uint32_t>(semantics_.chunks());
  }
  void put_input(int rank);
  Part second_half(const Part& whole, int from) const;
  Part& part_at(int rank, int chunk, int first, int most);
  // visit(the blocks that are one part, that part), in order.
  template <class Visit>
  void for_each_part(int rank, const BlockRun& run, Visit visit) {
    for (int first = run.first, end = run.first + run.count; first < end;) {
      Part& part = part_at(rank, run.chunk, first, end - first);
      const int count = part.count;
      visit(BlockRun{run.chunk, first, count}, part);
      first += count;
    }
  }

  void land(int rank, const BlockRun& at, Part& part);
  void put_in_scratch(int rank, const BlockRun& at, Part& part);
  void combine_in(int rank, const BlockRun& at, Part& part, Arrival arrival);
  void append_cells(std::vector<CellRun>& cells, Space space, std::uint32_t first, std::uint32_t count) const;
  std::vector<CellRun> cells_of(int rank, std::span<const BlockRun> blocks);
  RunList append_runs(int rank, const std::vector<CellRun>& cells);

  void add_send(int rank, int to, std::span<const BlockRun> blocks);
  void add_receive(int rank, int from, std::span<const BlockRun> blocks, Arrival arrival);
  void add_copy(int rank, std::span<const BlockRun> blocks);
  Status bring_results(int rank);

  // Of blocks in ascending order (merged()), so that what has the same history stays one part.
  void read_all(int rank, std::span<const BlockRun> blocks);
  // visit(blocks, part) puts each where it belongs; all of a part belong in the output, or none.
  template <class Visit>
  void write_all(int rank, std::span<const BlockRun> blocks, Visit visit) {
    for (const BlockRun& run : blocks)
      for (int first = run.first, end = run.first + run.count, count = 0; first < end; first += count) {
        count = semantics_.output_stretch(rank, {run.chunk, first, end - first}).count;
        for_each_part(rank, {run.chunk, first, count}, [&](const BlockRun& at, Part& part) {
          visit(at, part);
          write(rank, part);
        });
      }
  }

  void add_shm_collective(const ShmCollectiveCall& call, std::size_t member);
  BlockRuns given(const ShmCollectiveCall& call, std::size_t member) const;
  BlockRuns taken(const ShmCollectiveCall& call, std::size_t member, bool& takes_own) const;
  bool wants_itself(int rank, const BlockRuns& blocks) const;
  void append_ids(std::vector<BlockId>& ids, std::span<const BlockRun> blocks) const;

  std::uint32_t next_step(int rank) { return static_cast<std::uint32_t>(state_of(rank).schedule.steps.size()); }
  void read(int rank, const BlockRun& at, Part& part);
  void write(int rank, Part& part);
  void depend_on(std::int32_t step);
  void order_send(int rank, const Step& step);
  void keep_to_round(int rank, const Step& step);
  void finish_step(int rank, Step step);

  Status failure_;  // the first
  std::vector<RankState> ranks_;
  std::vector<Reader> reader_pool_;
  std::vector<std::uint32_t> pending_after_;  // of the step that is being made
  std::vector<LastSends> last_sends_;         // by rank; empty: the order is free
  std::map<int, std::vector<Round>> rounds_;  // by series, by rank
  int series_ = -1;                           // at work; -1: none
  int part_ = -1, parts_ = 0;                 // at work; -1: the plan has none
};

}  // namespace plait::plan
