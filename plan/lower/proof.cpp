#include "plan/lower/proof.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>

#include "plan/lower/rank_proof.h"
#include "plan/model/contribution_sets.h"
#include "plan/model/shm_collective_view.h"

namespace plait::plan {

namespace {

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
    ranks.emplace_back(semantics, rank, schedules[static_cast<std::size_t>(rank)], true);
  for (RankProof& rank : ranks) {
    if (Status status = rank.check_form(); !status.ok()) return status;
    if (Status status = rank.check_order(); !status.ok()) return status;
  }
  for (const bool in_place : {false, true})
    if (Status status = Execution(semantics, ranks, commutative, in_place).run(); !status.ok()) return status;
  return {};
}

}  // namespace plait::plan
