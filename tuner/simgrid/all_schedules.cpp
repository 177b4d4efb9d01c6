#include "tuner/simgrid/all_schedules.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace plait::tuner {
namespace {

using plan::BoundSchedule;
using plan::BoundShmCollective;
using plan::BoundStep;
using plan::Lane;
using plan::SpanList;

bool same(const SpanList& one, const SpanList& other) { return one.first == other.first && one.count == other.count; }

bool step_moves_along(const BoundStep& first, const BoundStep& other, int places) {
  const int peer = first.peer < 0 ? first.peer : first.peer + places;
  return other.peer == peer && other.kind == first.kind && other.channel == first.channel && other.rail == first.rail &&
         other.collective == first.collective && other.predecessors == first.predecessors &&
         same(other.successors, first.successors) && other.bytes == first.bytes && other.lane == first.lane;
}

bool collective_moves_along(const BoundShmCollective& first, const BoundShmCollective& other, int places) {
  return other.self == first.self + places && other.kind == first.kind && other.root == first.root &&
         other.members == first.members && other.bytes == first.bytes && other.piece_offsets == first.piece_offsets;
}

class Lowering {
 public:
  Lowering(const SharedPlan& shared, const Call& call, const System& system, int ranks_per_node)
      : shared_(shared), call_(call), system_(system), ranks_per_node_(ranks_per_node) {}

  Result<BoundSchedule> of(int rank) const {
    const Result<OwnPlan> plan = own_plan(shared_, call_, system_, rank);
    if (!plan.ok()) return plan.status();
    return messages_of(bind(plan->schedule, plan->semantics, rank, dense_placement(call_)));
  }

  Result<bool> node_moves_along(int node) const {
    const int first_rank = node * ranks_per_node_;
    const Result<BoundSchedule> first = of(first_rank);
    if (!first.ok()) return first.status();
    for (int place = 1; place < ranks_per_node_; ++place) {
      const Result<BoundSchedule> other = of(first_rank + place);
      if (!other.ok()) return other.status();
      if (!moves_along(*first, *other, place)) return false;
    }
    return true;
  }

 private:
  const SharedPlan& shared_;
  const Call& call_;
  const System& system_;
  int ranks_per_node_;
};

}  // namespace

BoundSchedule messages_of(BoundSchedule schedule) {
  return {.steps = std::move(schedule.steps),
          .spans = {},
          .grids = {},
          .successors = std::move(schedule.successors),
          .lanes = std::move(schedule.lanes),
          .lane_steps = std::move(schedule.lane_steps),
          .collectives = std::move(schedule.collectives),
          .channels_used = schedule.channels_used};
}

bool moves_along(const BoundSchedule& first, const BoundSchedule& other, int places) {
  const auto steps = [&](const BoundStep& one, const BoundStep& moved) { return step_moves_along(one, moved, places); };
  const auto collectives = [&](const BoundShmCollective& one, const BoundShmCollective& moved) {
    return collective_moves_along(one, moved, places);
  };
  const auto lanes = [](const Lane& one, const Lane& moved) { return same(one.steps, moved.steps); };
  return first.successors == other.successors && first.lane_steps == other.lane_steps &&
         std::ranges::equal(first.steps, other.steps, steps) && std::ranges::equal(first.lanes, other.lanes, lanes) &&
         std::ranges::equal(first.collectives, other.collectives, collectives);
}

BoundSchedule moved_along(const BoundSchedule& first, int places) {
  BoundSchedule moved = first;
  for (BoundStep& step : moved.steps)
    if (step.peer >= 0) step.peer += places;
  for (BoundShmCollective& collective : moved.collectives) collective.self += places;
  return moved;
}

Result<std::vector<BoundSchedule>> all_schedules(const SharedPlan& shared, const Call& call, const System& system,
                                                 int ranks_per_node) {
  const int ranks = system.hierarchy.ranks(), nodes = ranks / ranks_per_node;
  const Lowering lowering(shared, call, system, ranks_per_node);
  bool along = ranks_per_node > 1 && ranks == nodes * ranks_per_node;
  for (const int node : {0, nodes - 1}) {
    if (!along) break;
    const Result<bool> found = lowering.node_moves_along(node);
    if (!found.ok()) return found.status();
    along = *found;
  }
  std::vector<BoundSchedule> schedules;
  schedules.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const int place = rank % ranks_per_node;
    if (along && place > 0) {
      schedules.push_back(moved_along(schedules[static_cast<std::size_t>(rank - place)], place));
      continue;
    }
    Result<BoundSchedule> own = lowering.of(rank);
    if (!own.ok()) return own.status();
    schedules.push_back(std::move(*own));
  }
  return schedules;
}

}  // namespace plait::tuner
