#include "tuner/simgrid/all_schedules.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
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

// The same but for whom it is with.
bool alike(const BoundStep& one, const BoundStep& other) {
  return other.kind == one.kind && other.channel == one.channel && other.rail == one.rail &&
         other.collective == one.collective && other.predecessors == one.predecessors &&
         same(other.successors, one.successors) && other.bytes == one.bytes && other.lane == one.lane;
}
bool alike(const BoundShmCollective& one, const BoundShmCollective& other) {
  return other.kind == one.kind && other.root == one.root && other.bytes == one.bytes &&
         other.piece_offsets == one.piece_offsets;
}
bool alike(const Lane& one, const Lane& other) { return same(one.steps, other.steps); }

// But for what the two functions compare.
template <class Steps, class Collectives>
bool alike(const BoundSchedule& one, const BoundSchedule& other, Steps&& steps, Collectives&& collectives) {
  const auto both = [](auto&& also) {
    return [&also](const auto& first, const auto& second) { return alike(first, second) && also(first, second); };
  };
  return one.successors == other.successors && one.lane_steps == other.lane_steps &&
         std::ranges::equal(one.steps, other.steps, both(steps)) &&
         std::ranges::equal(one.lanes, other.lanes,
                            [](const Lane& first, const Lane& second) { return alike(first, second); }) &&
         std::ranges::equal(one.collectives, other.collectives, both(collectives));
}

class Lowering {
 public:
  Lowering(const SharedPlan& shared, const Call& call, const System& system)
      : shared_(shared), call_(call), system_(system) {}

  Result<BoundSchedule> of(int rank) const {
    const Result<OwnPlan> plan = own_plan(shared_, call_, system_, rank);
    if (!plan.ok()) return plan.status();
    return messages_of(bind(plan->schedule, plan->semantics, rank, dense_placement(call_)));
  }

 private:
  const SharedPlan& shared_;
  const Call& call_;
  const System& system_;
};

}  // namespace

namespace {

bool waits_for(const BoundSchedule& schedule, std::uint32_t step, std::uint32_t other) {
  const SpanList& list = schedule.steps[other].successors;
  const auto first = schedule.successors.begin() + list.first;
  return std::find(first, first + list.count, step) != first + list.count;
}

// By step, its place where of each exchange with a peer the send comes first: which of both does is by the ranks'
// numbers in a schedule, and means nothing, since a receive is posted in no time.
std::vector<std::uint32_t> sends_first(const BoundSchedule& schedule) {
  const auto is_send = [&](std::uint32_t at) { return schedule.steps[at].kind == plan::StepKind::send; };
  const auto count = static_cast<std::uint32_t>(schedule.steps.size());
  std::vector<std::uint32_t> place(count);
  std::iota(place.begin(), place.end(), 0U);
  for (std::uint32_t at = 0; at + 1 < count; ++at) {
    const std::int32_t peer = schedule.steps[at].peer;
    const bool exchange = peer >= 0 && schedule.steps[at + 1].peer == peer && is_send(at) != is_send(at + 1) &&
                          !waits_for(schedule, at + 1, at);
    if (!exchange) continue;
    if (is_send(at + 1)) std::swap(place[at], place[at + 1]);
    ++at;
  }
  return place;
}

// A schedule without spans, steps in the order of their places, lanes in that of their first steps.
class Reordered {
 public:
  Reordered(const BoundSchedule& schedule, const std::vector<std::uint32_t>& place)
      : schedule_(schedule), place_(place), lanes_(schedule.lanes.size(), -1) {
    made_.channels_used = schedule.channels_used;
    made_.collectives = schedule.collectives;
  }

  BoundSchedule made() {
    std::vector<std::uint32_t> step_at(place_.size());
    for (std::uint32_t step = 0; step < place_.size(); ++step) step_at[place_[step]] = step;
    for (const std::uint32_t step : step_at) add(schedule_.steps[step]);
    return std::move(made_);
  }

 private:
  void add(BoundStep step) {
    step.source = step.operand = step.destination = {};
    step.successors = add_places(schedule_.successors, step.successors, made_.successors);
    std::sort(made_.successors.begin() + step.successors.first, made_.successors.end());
    if (step.lane >= 0) step.lane = lane(static_cast<std::size_t>(step.lane));
    made_.steps.push_back(step);
  }

  std::int32_t lane(std::size_t old) {
    if (lanes_[old] < 0) {
      lanes_[old] = static_cast<std::int32_t>(made_.lanes.size());
      made_.lanes.push_back({add_places(schedule_.lane_steps, schedule_.lanes[old].steps, made_.lane_steps)});
    }
    return lanes_[old];
  }

  SpanList add_places(const std::vector<std::uint32_t>& steps, SpanList list, std::vector<std::uint32_t>& places) {
    const SpanList added{static_cast<std::uint32_t>(places.size()), list.count};
    for (std::uint32_t i = list.first; i < list.first + list.count; ++i) places.push_back(place_[steps[i]]);
    return added;
  }

  const BoundSchedule& schedule_;
  const std::vector<std::uint32_t>& place_;
  std::vector<std::int32_t> lanes_;  // by old one: -1: not yet met
  BoundSchedule made_;
};

}  // namespace

BoundSchedule messages_of(const BoundSchedule& schedule) {
  const std::vector<std::uint32_t> place = sends_first(schedule);
  return Reordered(schedule, place).made();
}

bool moves_along(const BoundSchedule& first, const BoundSchedule& other, int places) {
  return alike(
      first, other,
      [&](const BoundStep& one, const BoundStep& moved) {
        return moved.peer == (one.peer < 0 ? one.peer : one.peer + places);
      },
      [&](const BoundShmCollective& one, const BoundShmCollective& moved) {
        return moved.self == one.self + places && moved.members == one.members;
      });
}

BoundSchedule moved_along(const BoundSchedule& first, int places) {
  BoundSchedule moved = first;
  for (BoundStep& step : moved.steps)
    if (step.peer >= 0) step.peer += places;
  for (BoundShmCollective& collective : moved.collectives) collective.self += places;
  return moved;
}

bool mirrors(const BoundSchedule& first, const BoundSchedule& other, int node_first) {
  const auto mirror = [&](std::int32_t one, std::int32_t mirrored) {
    return mirrored == (one < 0 ? one : one ^ node_first);
  };
  return alike(
      first, other, [&](const BoundStep& one, const BoundStep& mirrored) { return mirror(one.peer, mirrored.peer); },
      [&](const BoundShmCollective& one, const BoundShmCollective& mirrored) {
        return mirrored.self == one.self && std::ranges::equal(one.members, mirrored.members, mirror);
      });
}

BoundSchedule mirrored(const BoundSchedule& first, int node_first) {
  BoundSchedule made = first;
  for (BoundStep& step : made.steps)
    if (step.peer >= 0) step.peer ^= node_first;
  for (BoundShmCollective& collective : made.collectives)
    for (std::int32_t& member : collective.members) member ^= node_first;
  return made;
}

namespace {

// Where a rank's schedule is taken from.
enum class Taken : std::uint8_t { from_node_0, from_nodes_first, lowered };

// The nodes that are looked at besides node 0.
std::vector<int> looked_at(int nodes) {
  std::vector<int> found;
  for (int distance = 1; distance < nodes; distance *= 2) {
    found.push_back(distance);
    if (distance > 2) found.push_back(distance - 1);
  }
  if (nodes > 1 && found.back() != nodes - 1) found.push_back(nodes - 1);
  return found;
}

class Taking {
 public:
  Taking(const Lowering& lowering, int nodes, int ranks_per_node)
      : lowering_(lowering), nodes_(nodes), ranks_per_node_(ranks_per_node), looked_at_(looked_at(nodes)) {}

  // By place within a node.
  Result<std::vector<Taken>> by_place() const {
    std::vector<Taken> found(static_cast<std::size_t>(ranks_per_node_), Taken::lowered);
    for (int place = 0; place < ranks_per_node_; ++place) {
      for (const Taken one : {Taken::from_node_0, Taken::from_nodes_first}) {
        const Result<bool> holds = one == Taken::from_node_0 ? place_mirrors(place) : place_moves_along(place);
        if (!holds.ok()) return holds.status();
        if (!*holds) continue;
        found[static_cast<std::size_t>(place)] = one;
        break;
      }
    }
    return found;
  }

 private:
  Result<bool> place_mirrors(int place) const {
    if (!std::has_single_bit(static_cast<unsigned>(nodes_)) ||
        !std::has_single_bit(static_cast<unsigned>(ranks_per_node_)))
      return false;
    const Result<BoundSchedule> first = lowering_.of(place);
    if (!first.ok()) return first.status();
    for (const int node : looked_at_) {
      const Result<BoundSchedule> other = lowering_.of(node * ranks_per_node_ + place);
      if (!other.ok()) return other.status();
      if (!mirrors(*first, *other, node * ranks_per_node_)) return false;
    }
    return true;
  }

  Result<bool> place_moves_along(int place) const {
    if (place == 0) return false;
    for (const int node : {0, looked_at_.empty() ? 0 : looked_at_.front(), nodes_ - 1}) {
      const int first_rank = node * ranks_per_node_;
      const Result<BoundSchedule> first = lowering_.of(first_rank);
      if (!first.ok()) return first.status();
      const Result<BoundSchedule> other = lowering_.of(first_rank + place);
      if (!other.ok()) return other.status();
      if (!moves_along(*first, *other, place)) return false;
    }
    return true;
  }

  const Lowering& lowering_;
  int nodes_, ranks_per_node_;
  std::vector<int> looked_at_;
};

}  // namespace

Result<std::vector<BoundSchedule>> all_schedules(const SharedPlan& shared, const Call& call, const System& system,
                                                 int ranks_per_node) {
  const int ranks = system.hierarchy.ranks(), nodes = ranks / ranks_per_node;
  const Lowering lowering(shared, call, system);
  std::vector<Taken> taken(static_cast<std::size_t>(ranks_per_node), Taken::lowered);
  if (ranks == nodes * ranks_per_node) {
    auto found = Taking(lowering, nodes, ranks_per_node).by_place();
    if (!found.ok()) return found.status();
    taken = std::move(*found);
  }
  std::vector<BoundSchedule> schedules;
  schedules.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto place = static_cast<std::size_t>(rank % ranks_per_node);
    const auto at = static_cast<std::size_t>(rank);
    if (taken[place] == Taken::from_node_0 && at > place) {
      schedules.push_back(mirrored(schedules[place], rank - static_cast<int>(place)));
      continue;
    }
    if (taken[place] == Taken::from_nodes_first) {
      schedules.push_back(moved_along(schedules[at - place], static_cast<int>(place)));
      continue;
    }
    Result<BoundSchedule> own = lowering.of(rank);
    if (!own.ok()) return own.status();
    schedules.push_back(std::move(*own));
  }
  return schedules;
}

}  // namespace plait::tuner
