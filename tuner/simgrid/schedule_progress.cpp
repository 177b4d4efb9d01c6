#include "tuner/simgrid/schedule_progress.h"

#include <algorithm>
#include <string>

namespace plait::tuner {
namespace {

using plan::BoundShmCollective;
using plan::BoundStep;
using plan::ShmCollectiveKind;
using plan::StepKind;

// Even tags are of lanes, which a pair's channel and rail tell apart, and their messages by number: SMPI has two boxes
// for short and long messages, so that of one tag a later one may be taken first. Odd ones are of shared-memory
// collectives.
constexpr int lanes_a_channel = 16, lanes_a_pair = 256, most_phases = 2;
// What fits a rank's slot is read by all at once.
constexpr std::uint64_t at_once_bytes = 4096;

int lane_tag(const BoundStep& step, std::uint32_t number) {
  const int lane = static_cast<int>(step.channel) * lanes_a_channel + step.rail + 1;
  return 2 * (static_cast<int>(number) * lanes_a_pair + lane);
}

// Bytes from one member to another in a phase; 0: none.
std::uint64_t share_of(std::uint64_t bytes, std::size_t members, std::size_t member) {
  return bytes * (member + 1) / members - bytes * member / members;
}

class Traffic {
 public:
  explicit Traffic(const BoundShmCollective& collective) : collective_(collective) {}

  int phases() const {
    const bool by_shares =
        collective_.kind == ShmCollectiveKind::all_reduce || collective_.kind == ShmCollectiveKind::reduce;
    return by_shares && collective_.bytes > at_once_bytes ? 2 : 1;
  }

  std::uint64_t bytes(std::size_t from, std::size_t to, int phase) const {
    const bool from_root = is_root(from), to_root = is_root(to);
    switch (collective_.kind) {
      case ShmCollectiveKind::all_reduce:
        if (phases() == 1) return collective_.bytes;
        return share(phase == 0 ? to : from);
      case ShmCollectiveKind::reduce:
        if (phases() == 1) return to_root ? collective_.bytes : 0;
        return phase == 0 ? share(to) : to_root ? share(from) : 0;
      case ShmCollectiveKind::reduce_scatter:
        return piece(to);
      case ShmCollectiveKind::broadcast:
        return from_root ? collective_.bytes : 0;
      case ShmCollectiveKind::all_gather:
        return piece(from);
      case ShmCollectiveKind::gather:
        return to_root ? piece(from) : 0;
      case ShmCollectiveKind::scatter:
        return from_root ? piece(to) : 0;
      case ShmCollectiveKind::all_to_all:
        return collective_.bytes;
    }
    return 0;
  }

  // Whether the member has a message to send or to take, be it empty: who is waited for.
  bool meets(std::size_t from, std::size_t to, int phase) const {
    if (bytes(from, to, phase) > 0) return true;
    return collective_.bytes == 0 && phase == 0 && collective_.kind == ShmCollectiveKind::all_reduce;
  }

 private:
  bool is_root(std::size_t member) const { return static_cast<std::int32_t>(member) == collective_.root; }
  std::uint64_t share(std::size_t member) const {
    return share_of(collective_.bytes, collective_.members.size(), member);
  }
  std::uint64_t piece(std::size_t member) const {
    return collective_.piece_offsets[member + 1] - collective_.piece_offsets[member];
  }

  const BoundShmCollective& collective_;
};

}  // namespace

void ScheduleProgress::begin() {
  reset();
  start_ready();
}

void ScheduleProgress::ended(const Work& work) {
  end(work);
  start_ready();
}

Status ScheduleProgress::outcome() const {
  if (completed_ == schedule_.steps.size()) return {};
  return {Code::invalid, "simulation: " + std::to_string(schedule_.steps.size() - completed_) + " of " +
                             std::to_string(schedule_.steps.size()) + " steps wait for ever"};
}

void ScheduleProgress::reset() {
  left_.clear();
  for (const BoundStep& step : schedule_.steps) left_.push_back(step.predecessors);
  lane_next_.assign(schedule_.lanes.size(), 0);
  ready_.clear();
  for (std::uint32_t step = 0; step < left_.size(); ++step)
    if (left_[step] == 0) ready_.push_back(step);
  posts_.clear();
  together_.clear();
  behind_.clear();
  completed_ = 0;
}

bool ScheduleProgress::may_start(std::uint32_t step) const {
  const std::int32_t lane = schedule_.steps[step].lane;
  if (lane < 0) return true;
  const plan::Lane& order = schedule_.lanes[static_cast<std::size_t>(lane)];
  return schedule_.lane_steps[order.steps.first + lane_next_[static_cast<std::size_t>(lane)]] == step;
}

// One that starts may let the next of its lane start, and a local one is complete at once.
void ScheduleProgress::start_ready() {
  for (bool any = true; any;) {
    any = false;
    for (std::size_t at = 0; at < ready_.size();) {
      const std::uint32_t step = ready_[at];
      if (!may_start(step)) {
        ++at;
        continue;
      }
      ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
      if (schedule_.steps[step].lane >= 0) ++lane_next_[static_cast<std::size_t>(schedule_.steps[step].lane)];
      start(step);
      any = true;
    }
  }
}

void ScheduleProgress::start(std::uint32_t number) {
  const BoundStep& step = schedule_.steps[number];
  const std::uint32_t in_lane = step.lane < 0 ? 0 : lane_next_[static_cast<std::size_t>(step.lane)] - 1;
  switch (step.kind) {
    case StepKind::send:
      return send(step.peer, step.bytes, lane_tag(step, in_lane), {number, false});
    case StepKind::recv:
    case StepKind::recv_reduce:
      return receive(step.peer, step.bytes, lane_tag(step, in_lane), {number, false});
    case StepKind::shm_collective:
      together_.push_back({.step = number});
      return start_phase(together_.back());
    default:
      return complete(number);
  }
}

void ScheduleProgress::complete(std::uint32_t number) {
  ++completed_;
  const plan::SpanList& next = schedule_.steps[number].successors;
  for (std::uint32_t i = 0; i < next.count; ++i) {
    const std::uint32_t successor = schedule_.successors[next.first + i];
    if (--left_[successor] == 0) ready_.push_back(successor);
  }
}

void ScheduleProgress::send(int peer, std::uint64_t bytes, int tag, const Work& work) {
  Post post{.sends = true, .peer = peer, .tag = tag, .bytes = bytes, .work = work};
  if (bytes >= long_bytes) {
    post.work.long_to = peer;
    const auto [before, is_first] = behind_.try_emplace(peer);
    if (!is_first) return before->second.push_back(post);
  }
  posts_.push_back(post);
}

void ScheduleProgress::let_next(int receiver) {
  const auto sent = behind_.find(receiver);
  if (sent->second.empty()) {
    behind_.erase(sent);
    return;
  }
  posts_.push_back(sent->second.front());
  sent->second.pop_front();
}

void ScheduleProgress::receive(int peer, std::uint64_t bytes, int tag, const Work& work) {
  posts_.push_back({.sends = false, .peer = peer, .tag = tag, .bytes = bytes, .work = work});
}

void ScheduleProgress::start_phase(Together& together) {
  const auto number = static_cast<std::size_t>(schedule_.steps[together.step].collective);
  const BoundShmCollective& collective = schedule_.collectives[number];
  const Traffic traffic(collective);
  const auto self = static_cast<std::size_t>(collective.self);
  const Work work{together.step, true};
  while (together.pending == 0) {
    if (together.phase == traffic.phases()) {
      const std::uint32_t step = together.step;
      std::erase_if(together_, [&](const Together& one) { return one.step == step; });
      return complete(step);
    }
    const int tag = 2 * (static_cast<int>(number) * most_phases + together.phase) + 1;
    for (std::size_t distance = 1; distance < collective.members.size(); ++distance) {
      const std::size_t other = (self + distance) % collective.members.size();
      const std::int32_t peer = collective.members[other];
      if (traffic.meets(other, self, together.phase)) {
        receive(peer, traffic.bytes(other, self, together.phase), tag, work);
        ++together.pending;
      }
      if (traffic.meets(self, other, together.phase)) {
        send(peer, traffic.bytes(self, other, together.phase), tag, work);
        ++together.pending;
      }
    }
    ++together.phase;
  }
}

void ScheduleProgress::end(const Work& work) {
  if (work.long_to >= 0) let_next(work.long_to);
  if (!work.of_collective) return complete(work.step);
  const auto found = std::ranges::find(together_, work.step, &Together::step);
  if (--found->pending == 0) start_phase(*found);
}

}  // namespace plait::tuner
