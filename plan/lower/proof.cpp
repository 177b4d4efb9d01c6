#include "plan/lower/proof.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>

#include "plan/model/contribution_sets.h"
#include "plan/model/shm_collective_view.h"

namespace plait::plan {

namespace {

std::string at(int rank, std::size_t step) {
  return "rank " + std::to_string(rank) + " step " + std::to_string(step) + ": ";
}

Status violation(int rank, std::size_t step, const std::string& what) {
  return {Code::invalid, "proof: " + at(rank, step) + what};
}

bool is_message(StepKind kind) { return !is_local(kind) && kind != StepKind::shm_collective; }

struct Cell {
  Space space;
  std::uint32_t index;
};

// One rank's schedule with what the proof needs to know about it.
class RankProof {
 public:
  RankProof(const Semantics& semantics, int rank, const Schedule& schedule)
      : semantics_(semantics),
        rank_(rank),
        schedule_(schedule),
        inputs_(semantics.input_cells(rank)),
        outputs_(semantics.output_cells(rank)) {
    spell_out_runs();
  }

  const Schedule& schedule() const { return schedule_; }
  const Step& step(std::size_t index) const { return schedule_.steps[index]; }
  std::size_t cells() const { return inputs_ + outputs_ + schedule_.scratch.size(); }

  Status check_form() const {
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i)
      if (Status status = check_step(i); !status.ok()) return status;
    return {};
  }

  // Precondition: the list lies within the schedule.
  std::span<const Cell> cells_of(RunList list) const {
    const std::size_t first = first_of_run_[list.first], end = first_of_run_[list.first + list.count];
    return std::span(cells_of_runs_).subspan(first, end - first);
  }

  BlockId block_of(Cell cell) const {
    if (cell.space == Space::scratch) return schedule_.scratch[cell.index];
    return cell.space == Space::input ? semantics_.input_block(rank_, cell.index)
                                      : semantics_.output_block(rank_, cell.index);
  }

  std::vector<BlockId> blocks_of(RunList list) const {
    std::vector<BlockId> blocks;
    for (const Cell cell : cells_of(list)) blocks.push_back(block_of(cell));
    return blocks;
  }

  // The memory behind a cell: with `in_place`, an input cell may be an output cell.
  std::size_t memory_of(Cell cell, bool in_place) const {
    if (cell.space == Space::scratch) return inputs_ + outputs_ + cell.index;
    if (cell.space == Space::output) return inputs_ + cell.index;
    const auto output = in_place ? semantics_.aliased_output(rank_, cell.index) : std::nullopt;
    return output ? inputs_ + *output : cell.index;
  }

  // Conflicting accesses must be ordered by `after`, directly or through other steps.
  Status check_order() const {
    struct Access {
      std::int64_t writer = -1;
      std::vector<std::size_t> readers;
    };
    std::vector<Access> accesses(cells());
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      for (const RunList list : {step(i).source, step(i).operand})
        for (const Cell cell : cells_of(list)) {
          Access& access = accesses[memory_of(cell, true)];
          if (!ordered(access.writer, i)) return unordered(i, static_cast<std::size_t>(access.writer), cell);
          access.readers.push_back(i);
        }
      for (const Cell cell : cells_of(step(i).destination)) {
        Access& access = accesses[memory_of(cell, true)];
        if (!ordered(access.writer, i)) return unordered(i, static_cast<std::size_t>(access.writer), cell);
        for (const std::size_t reader : access.readers)
          if (reader != i && !ordered(static_cast<std::int64_t>(reader), i)) return unordered(i, reader, cell);
        access.writer = static_cast<std::int64_t>(i);
        access.readers.clear();
      }
    }
    return {};
  }

 private:
  Status check_step(std::size_t index) const {
    const Step& step = schedule_.steps[index];
    if (is_message(step.kind) && (step.peer < 0 || step.peer >= semantics_.ranks() || step.peer == rank_))
      return violation(rank_, index, "peer " + std::to_string(step.peer) + " is no other rank");
    if (std::size_t{step.after.first} + step.after.count > schedule_.after.size())
      return violation(rank_, index, "its order lies outside the schedule");
    for (std::uint32_t k = 0; k < step.after.count; ++k)
      if (schedule_.after[step.after.first + k] >= index)
        return violation(rank_, index, "waits for a step that is not earlier");
    for (const RunList list : {step.source, step.operand, step.destination})
      if (Status status = check_bounds(index, list); !status.ok()) return status;
    if (step.kind == StepKind::shm_collective)
      if (Status status = check_collective(index, step); !status.ok()) return status;
    return check_operands(index, step);
  }

  template <class T>
  static bool lies_within(RunList list, const std::vector<T>& values) {
    return std::size_t{list.first} + list.count <= values.size();
  }

  // Who takes part, and that the blocks it gives and gets are those of its kind.
  Status check_collective(std::size_t index, const Step& step) const {
    if (step.collective < 0 || static_cast<std::size_t>(step.collective) >= schedule_.collectives.size())
      return violation(rank_, index, "names no collective");
    const ShmCollective& collective = schedule_.collectives[static_cast<std::size_t>(step.collective)];
    if (!lies_within(collective.members, schedule_.collective_members) ||
        !lies_within(collective.blocks, schedule_.collective_blocks) ||
        !lies_within(collective.pieces, schedule_.collective_pieces))
      return violation(rank_, index, "its collective lies outside the schedule");
    const ShmCollectiveView view(schedule_, collective, rank_);
    if (!view.members_are_ranks(semantics_.ranks()))
      return violation(rank_, index, "its collective has no proper members");
    if (!view.pieces_fit()) return violation(rank_, index, "its collective's pieces are not its blocks");
    if (blocks_of(step.source) != view.given()) return violation(rank_, index, "does not give its collective's blocks");
    if (collective.kind != ShmCollectiveKind::all_to_all && blocks_of(step.destination) != view.taken())
      return violation(rank_, index, "does not get its collective's blocks");
    return {};
  }

  bool within_bounds(const CellRun& run) const {
    const std::size_t limit = run.space == Space::input    ? inputs_
                              : run.space == Space::output ? outputs_
                                                           : schedule_.scratch.size();
    return std::size_t{run.first} + run.count <= limit;
  }

  // The cells of all runs, one after the other; none of a run that leaves its buffer.
  void spell_out_runs() {
    first_of_run_.reserve(schedule_.runs.size() + 1);
    for (const CellRun& run : schedule_.runs) {
      first_of_run_.push_back(cells_of_runs_.size());
      for (std::uint32_t k = 0; k < run.count && within_bounds(run); ++k)
        cells_of_runs_.push_back({run.space, run.first + k});
    }
    first_of_run_.push_back(cells_of_runs_.size());
  }

  Status check_bounds(std::size_t index, RunList list) const {
    if (std::size_t{list.first} + list.count > schedule_.runs.size())
      return violation(rank_, index, "its runs lie outside the schedule");
    for (std::uint32_t r = list.first; r < list.first + list.count; ++r) {
      if (!within_bounds(schedule_.runs[r])) return violation(rank_, index, "touches a cell beyond its buffer");
    }
    return {};
  }

  Status check_operands(std::size_t index, const Step& step) const {
    const std::span<const Cell> source = cells_of(step.source), operand = cells_of(step.operand),
                                destination = cells_of(step.destination);
    const bool has_source = step.kind == StepKind::send || step.kind == StepKind::copy || step.kind == StepKind::reduce;
    const bool has_operand = step.kind == StepKind::recv_reduce || step.kind == StepKind::reduce;
    const bool has_destination = step.kind != StepKind::send;
    const bool collective = step.kind == StepKind::shm_collective;
    if (!collective &&
        (has_source == source.empty() || has_operand == operand.empty() || has_destination == destination.empty()))
      return violation(rank_, index, "lacks an operand or has one too many");
    std::vector<Position> written;
    written.reserve(destination.size());
    for (std::size_t i = 0; i < destination.size(); ++i) {
      if (destination[i].space == Space::input) return violation(rank_, index, "writes into the input");
      written.push_back({memory_of(destination[i], true), i});
    }
    std::ranges::sort(written, {}, &Position::memory);
    if (std::ranges::adjacent_find(written, {}, &Position::memory) != written.end())
      return violation(rank_, index, "writes a cell twice");
    for (const auto* read : {&source, &operand})
      if (has_destination && !collective && !read->empty())
        if (Status status = check_read(index, *read, destination, written); !status.ok()) return status;
    return {};
  }

  // Where in a list of cells a piece of memory stands.
  struct Position {
    std::size_t memory, index;
  };

  // `written`: the destination's, by memory.
  Status check_read(std::size_t index, std::span<const Cell> read, std::span<const Cell> destination,
                    std::span<const Position> written) const {
    if (read.size() != destination.size()) return violation(rank_, index, "operands of different lengths");
    for (std::size_t i = 0; i < read.size(); ++i) {
      const std::size_t memory = memory_of(read[i], true);
      const auto found = std::ranges::lower_bound(written, memory, {}, &Position::memory);
      if (found != written.end() && found->memory == memory && found->index != i)
        return violation(rank_, index, "writes over its own operand");
      if (block_of(read[i]) != block_of(destination[i]))
        return violation(rank_, index, "brings a block to the cell of another");
    }
    return {};
  }

  bool ordered(std::int64_t earlier, std::size_t later) const {
    if (earlier < 0) return true;
    const auto target = static_cast<std::uint32_t>(earlier);
    std::vector<std::uint32_t> open = {static_cast<std::uint32_t>(later)};
    std::vector<bool> seen;
    while (!open.empty()) {
      const RunList after = schedule_.steps[open.back()].after;
      open.pop_back();
      for (std::uint32_t k = 0; k < after.count; ++k) {
        const std::uint32_t step = schedule_.after[after.first + k];
        if (step == target) return true;
        if (step < target) continue;
        if (seen.empty()) seen.resize(schedule_.steps.size());
        if (!seen[step]) open.push_back(step);
        seen[step] = true;
      }
    }
    return false;
  }

  Status unordered(std::size_t step, std::size_t other, Cell cell) const {
    constexpr const char* spaces[] = {"input", "output", "scratch"};
    return violation(rank_, step,
                     "not ordered after step " + std::to_string(other) + " although both touch " +
                         spaces[static_cast<std::size_t>(cell.space)] + " cell " + std::to_string(cell.index));
  }

  const Semantics& semantics_;
  int rank_;
  const Schedule& schedule_;
  std::size_t inputs_, outputs_;
  std::vector<Cell> cells_of_runs_;
  std::vector<std::size_t> first_of_run_;  // in cells_of_runs_; and its size
};

// Runs all ranks' steps on contribution sets. A message happens when both its sides may start.
class Execution {
 public:
  Execution(const Semantics& semantics, const std::vector<RankProof>& ranks, bool commutative, bool in_place)
      : semantics_(semantics),
        ranks_(ranks),
        in_place_(in_place),
        sets_(semantics.ranks(), !commutative),
        states_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) prepare(static_cast<int>(rank));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) connect_lanes(static_cast<int>(rank));
  }

  Status run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (std::size_t step = 0; step < states_[rank].open.size(); ++step)
        if (states_[rank].open[step] == 0) offer(static_cast<int>(rank), step);
    while (!runnable_.empty()) {
      const auto [rank, step] = runnable_.back();
      runnable_.pop_back();
      if (Status status = execute(rank, step); !status.ok()) return status;
    }
    return check_result();
  }

 private:
  using LaneKey = std::tuple<ChannelKind, std::int8_t /* rail */, int /* peer */, bool /* the sending side */>;
  static constexpr LaneKey collective_lane{ChannelKind::shm, any_rail, -1, false};

  struct Lane {
    std::vector<std::size_t> steps;
    Lane* other_side = nullptr;  // the peer's, of messages
    std::size_t started = 0;     // how many have started, in order
    std::size_t met = 0;         // how many of the started have met their other side

    std::size_t position_of(std::size_t step) const {
      return static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), step) - steps.begin());
    }
  };
  struct RankState {
    std::vector<std::int32_t> set;                  // by memory cell; none: undefined
    std::vector<std::uint32_t> open;                // by step: predecessors not complete
    std::vector<std::vector<std::size_t>> waiting;  // by step: those that wait for it
    std::vector<bool> offered;
    std::map<LaneKey, Lane> lanes;
    std::vector<Lane*> lane_of;  // by step; null: local
    std::size_t completed = 0;
  };

  void prepare(int rank) {
    const RankProof& proof = ranks_[static_cast<std::size_t>(rank)];
    RankState& state = states_[static_cast<std::size_t>(rank)];
    state.set.assign(proof.cells(), ContributionSets::none);
    // Where several ranks have a block, its origin stands for all of them: their values are the same.
    for (std::uint32_t cell = 0; cell < semantics_.input_cells(rank); ++cell) {
      const int origin = semantics_.origin(semantics_.input_block(rank, cell));
      state.set[proof.memory_of({Space::input, cell}, in_place_)] = sets_.of_rank(origin >= 0 ? origin : rank);
    }
    const std::size_t steps = proof.schedule().steps.size();
    state.open.resize(steps);
    state.waiting.resize(steps);
    state.offered.resize(steps);
    state.lane_of.resize(steps);
    for (std::size_t i = 0; i < steps; ++i) {
      const Step& step = proof.step(i);
      state.open[i] = step.after.count;
      for (std::uint32_t k = 0; k < step.after.count; ++k)
        state.waiting[proof.schedule().after[step.after.first + k]].push_back(i);
      if (is_local(step.kind)) continue;
      const bool collective = step.kind == StepKind::shm_collective;
      Lane& lane = state.lanes[collective ? collective_lane
                                          : LaneKey(step.channel, step.rail, step.peer, step.kind == StepKind::send)];
      lane.steps.push_back(i);
      state.lane_of[i] = &lane;
    }
  }

  void connect_lanes(int rank) {
    for (auto& [key, lane] : states_[static_cast<std::size_t>(rank)].lanes) {
      if (key == collective_lane) continue;
      const auto [channel, rail, peer, sends] = key;
      lane.other_side = &states_[static_cast<std::size_t>(peer)].lanes[{channel, rail, rank, !sends}];
    }
  }

  void offer(int rank, std::size_t index) {
    const Step& step = ranks_[static_cast<std::size_t>(rank)].step(index);
    states_[static_cast<std::size_t>(rank)].offered[index] = true;
    if (is_local(step.kind)) {
      runnable_.push_back({rank, index});
      return;
    }
    Lane& lane = *states_[static_cast<std::size_t>(rank)].lane_of[index];
    advance(states_[static_cast<std::size_t>(rank)], lane);
    if (step.kind == StepKind::shm_collective)
      meet_collective(rank);
    else if (step.kind == StepKind::send)
      meet(lane, step.peer, *lane.other_side);
    else
      meet(*lane.other_side, rank, lane);
  }

  static void advance(const RankState& state, Lane& lane) {
    while (lane.started < lane.steps.size() && state.offered[lane.steps[lane.started]]) ++lane.started;
  }

  ShmCollectiveView collective_of(int rank, std::size_t index) const {
    const Schedule& schedule = ranks_[static_cast<std::size_t>(rank)].schedule();
    return {schedule, schedule.collectives[static_cast<std::size_t>(schedule.steps[index].collective)], rank};
  }
  Lane& collectives_of(int rank) { return states_[static_cast<std::size_t>(rank)].lanes[collective_lane]; }

  // All members' next shared-memory collectives happen at once, when all have started theirs.
  void meet_collective(int rank) {
    while (true) {
      const Lane& own = collectives_of(rank);
      if (own.met == own.started) return;
      const auto members = collective_of(rank, own.steps[own.met]).members();
      for (const int member : members) {
        const Lane& other = collectives_of(member);
        if (other.met == other.started || other.met != own.met) return;
      }
      runnable_.push_back({rank, own.steps[own.met]});  // executing it completes all members' steps
      for (const int member : members) ++collectives_of(member).met;
    }
  }

  Status execute_collective(int rank, std::size_t index) {
    const std::size_t position = collectives_of(rank).position_of(index);
    const ShmCollectiveView view = collective_of(rank, index);
    std::vector<std::size_t> steps;
    for (const int member : view.members()) {
      steps.push_back(collectives_of(member).steps[position]);
      if (!view.agrees_with(collective_of(member, steps.back())))
        return violation(member, steps.back(), "is not the shared-memory collective of rank " + std::to_string(rank));
    }
    std::vector<std::unordered_map<BlockId, std::int32_t>> given(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (Status status = collect_given(view.members()[i], steps[i], given[i]); !status.ok()) return status;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (Status status = take(view, given, i, steps[i]); !status.ok()) return status;
    for (std::size_t i = 0; i < steps.size(); ++i) complete(view.members()[i], steps[i]);
    return {};
  }

  Status collect_given(int rank, std::size_t index, std::unordered_map<BlockId, std::int32_t>& given) {
    const RankProof& proof = ranks_[static_cast<std::size_t>(rank)];
    for (const Cell cell : proof.cells_of(proof.step(index).source)) {
      const std::int32_t set = set_of(rank, cell);
      if (set == ContributionSets::none) return violation(rank, index, "reads a cell that was never written");
      given[proof.block_of(cell)] = set;
    }
    return {};
  }

  // What the member `taker` gets: the combination of all, or what exactly one member gives.
  Status take(const ShmCollectiveView& view, const std::vector<std::unordered_map<BlockId, std::int32_t>>& given,
              std::size_t taker, std::size_t index) {
    const int rank = view.members()[taker];
    const RankProof& proof = ranks_[static_cast<std::size_t>(rank)];
    for (const Cell cell : proof.cells_of(proof.step(index).destination)) {
      const BlockId block = proof.block_of(cell);
      std::int32_t set = ContributionSets::none;
      for (const auto& blocks : given) {
        const auto found = blocks.find(block);
        if (found == blocks.end()) continue;
        if (set == ContributionSets::none) {
          set = found->second;
          continue;
        }
        if (!reduces(view.kind()))
          return violation(rank, index, "gets block " + std::to_string(block) + " from two members");
        set = sets_.combine(set, found->second);
        if (set == ContributionSets::none)
          return violation(rank, index,
                           "combines a contribution twice, or out of order, in block " + std::to_string(block));
      }
      if (set == ContributionSets::none)
        return violation(rank, index, "gets block " + std::to_string(block) + " from nobody");
      set_of(rank, cell) = set;
    }
    return check_order_of_pieces(view, taker, index);
  }

  // Of an all_to_all: the pieces arrive in the order of the members.
  Status check_order_of_pieces(const ShmCollectiveView& view, std::size_t taker, std::size_t index) {
    if (view.kind() != ShmCollectiveKind::all_to_all) return {};
    const int rank = view.members()[taker];
    const std::size_t position = collectives_of(rank).position_of(index);
    std::vector<BlockId> expected;
    for (const int giver : view.members()) {
      const ShmCollectiveView row = collective_of(giver, collectives_of(giver).steps[position]);
      const std::size_t piece = row.blocks().size() / view.members().size();
      for (std::size_t i = 0; i < piece; ++i) expected.push_back(row.blocks()[taker * piece + i]);
    }
    const RankProof& proof = ranks_[static_cast<std::size_t>(rank)];
    if (proof.blocks_of(proof.step(index).destination) == expected) return {};
    return violation(rank, index, "does not get its collective's blocks");
  }

  void meet(Lane& out, int receiver, Lane& in) {
    while (out.met < out.started && in.met < in.started) {
      runnable_.push_back({receiver, in.steps[in.met]});  // executing the receive completes both sides
      ++out.met;
      ++in.met;
    }
  }

  Status execute(int rank, std::size_t index) {
    const Step& step = ranks_[static_cast<std::size_t>(rank)].step(index);
    if (step.kind == StepKind::shm_collective) return execute_collective(rank, index);
    if (is_local(step.kind)) {
      if (Status status = deliver(rank, index, rank, index); !status.ok()) return status;
      complete(rank, index);
      return {};
    }
    const std::size_t sent = partner_of(rank, index);
    if (Status status = deliver(step.peer, sent, rank, index); !status.ok()) return status;
    complete(step.peer, sent);
    complete(rank, index);
    return {};
  }

  // The send that the receive `index` of `rank` meets: the same position in the peer's lane.
  std::size_t partner_of(int rank, std::size_t index) const {
    const Lane& lane = *states_[static_cast<std::size_t>(rank)].lane_of[index];
    return lane.other_side->steps[lane.position_of(index)];
  }

  // Moves or combines the values of `from`'s source cells into `to`'s destination cells.
  Status deliver(int from, std::size_t from_index, int to, std::size_t to_index) {
    const RankProof& giver = ranks_[static_cast<std::size_t>(from)];
    const RankProof& taker = ranks_[static_cast<std::size_t>(to)];
    const Step& step = taker.step(to_index);
    const auto source = giver.cells_of(giver.step(from_index).source);
    const auto destination = taker.cells_of(step.destination);
    const auto operand = taker.cells_of(step.operand);
    if (source.size() != destination.size())
      return violation(to, to_index,
                       "receives " + std::to_string(source.size()) + " blocks from rank " + std::to_string(from) +
                           " but has room for " + std::to_string(destination.size()));
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (giver.block_of(source[i]) != taker.block_of(destination[i]))
        return violation(to, to_index,
                         "gets block " + std::to_string(giver.block_of(source[i])) + " for block " +
                             std::to_string(taker.block_of(destination[i])));
      std::int32_t set = set_of(from, source[i]);
      if (set == ContributionSets::none) return violation(from, from_index, "reads a cell that was never written");
      if (!operand.empty()) {
        const std::int32_t own = set_of(to, operand[i]);
        if (own == ContributionSets::none)
          return violation(to, to_index, "combines with a cell that was never written");
        const bool left = step.kind == StepKind::reduce || step.incoming_left;
        set = left ? sets_.combine(set, own) : sets_.combine(own, set);
        if (set == ContributionSets::none)
          return violation(to, to_index,
                           "combines a contribution twice, or out of order, in block " +
                               std::to_string(taker.block_of(destination[i])));
      }
      set_of(to, destination[i]) = set;
    }
    return {};
  }

  std::int32_t& set_of(int rank, Cell cell) {
    const RankProof& proof = ranks_[static_cast<std::size_t>(rank)];
    return states_[static_cast<std::size_t>(rank)].set[proof.memory_of(cell, in_place_)];
  }

  void complete(int rank, std::size_t index) {
    RankState& state = states_[static_cast<std::size_t>(rank)];
    ++state.completed;
    for (const std::size_t next : state.waiting[index])
      if (--state.open[next] == 0) offer(rank, next);
  }

  Status check_result() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (states_[rank].completed < states_[rank].open.size()) return stuck(static_cast<int>(rank));
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (std::uint32_t cell = 0; cell < semantics_.output_cells(static_cast<int>(rank)); ++cell)
        if (!is_right(static_cast<int>(rank), cell))
          return {Code::invalid, "proof: rank " + std::to_string(rank) +
                                     " ends with the wrong contributions, or other bits than another rank, in block " +
                                     std::to_string(semantics_.output_block(static_cast<int>(rank), cell))};
    return {};
  }

  bool is_right(int rank, std::uint32_t cell) {
    const std::int32_t set = set_of(rank, {Space::output, cell});
    if (set == ContributionSets::none) return false;
    const BlockId block = semantics_.output_block(rank, cell);
    const int origin = semantics_.origin(block);
    if (origin >= 0) return set == sets_.of_rank(origin);
    return sets_.is_all(set) && result_of_.try_emplace(block, set).first->second == set;
  }

  Status stuck(int rank) const {
    const RankState& state = states_[static_cast<std::size_t>(rank)];
    for (const auto& [key, lane] : state.lanes)
      if (lane.met < lane.steps.size())
        return violation(rank, lane.steps[lane.met],
                         key == collective_lane ? "waits for ever for its collective"
                                                : "waits for ever for rank " + std::to_string(std::get<2>(key)) +
                                                      (std::get<3>(key) ? " to receive" : " to send"));
    return {Code::invalid, "proof: rank " + std::to_string(rank) + " never finishes"};
  }

  const Semantics& semantics_;
  const std::vector<RankProof>& ranks_;
  bool in_place_;
  ContributionSets sets_;
  std::unordered_map<BlockId, std::int32_t> result_of_;  // every rank that gets the block must get this
  std::vector<RankState> states_;
  std::vector<std::pair<int, std::size_t>> runnable_;
};

}  // namespace

Status prove(const Semantics& semantics, std::span<const Schedule> schedules, bool commutative) {
  if (schedules.size() != static_cast<std::size_t>(semantics.ranks()))
    return {Code::invalid, "proof: " + std::to_string(schedules.size()) + " schedules for " +
                               std::to_string(semantics.ranks()) + " ranks"};
  std::vector<RankProof> ranks;
  for (int rank = 0; rank < semantics.ranks(); ++rank)
    ranks.emplace_back(semantics, rank, schedules[static_cast<std::size_t>(rank)]);
  for (const RankProof& rank : ranks) {
    if (Status status = rank.check_form(); !status.ok()) return status;
    if (Status status = rank.check_order(); !status.ok()) return status;
  }
  for (const bool in_place : {false, true})
    if (Status status = Execution(semantics, ranks, commutative, in_place).run(); !status.ok()) return status;
  return {};
}

}  // namespace plait::plan
