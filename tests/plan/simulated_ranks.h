// All ranks of a job in one process: their bound schedules run on real bytes, in an order that a seed decides.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "plan/bound_schedule.h"

namespace plait {

struct SimulatedRank {
  BoundSchedule schedule;
  std::vector<std::byte> input, output, scratch;
  bool in_place = false;  // the input is the output's memory from `in_place_offset` on
  std::size_t in_place_offset = 0;

  std::byte* base(Space space) {
    if (space == Space::scratch) return scratch.data();
    if (space == Space::output) return output.data();
    return in_place ? output.data() + in_place_offset : input.data();
  }
};

// Runs until nothing can move; returns whether every step of every rank is complete. Values are int32 and combined by
// the larger of both when `ordered_operator`, else by their sum.
class SimulatedJob {
 public:
  SimulatedJob(std::vector<SimulatedRank>& ranks, unsigned seed, bool ordered_operator)
      : ranks_(ranks), random_(seed), ordered_(ordered_operator) {}

  bool run() {
    for (SimulatedRank& rank : ranks_) {
      auto& open = open_.emplace_back();
      for (const BoundStep& step : rank.schedule.steps) open.push_back(step.predecessors);
      done_.emplace_back(rank.schedule.steps.size(), false);
      lane_next_.emplace_back(rank.schedule.lanes.size(), 0);
    }
    for (;;) {
      std::vector<std::pair<std::size_t, std::uint32_t>> able;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        for (std::uint32_t i = 0; i < ranks_[r].schedule.steps.size(); ++i)
          if (can_run(r, i)) able.emplace_back(r, i);
      if (able.empty()) break;
      const auto [r, i] = able[random_() % able.size()];
      execute(r, i);
    }
    for (const auto& done : done_)
      for (const bool step : done)
        if (!step) return false;
    return true;
  }

 private:
  using Wire = std::tuple<ChannelKind, std::int8_t, std::size_t, std::size_t>;

  Wire wire_to(std::size_t r, const BoundStep& step) const {
    const auto peer = static_cast<std::size_t>(step.peer);
    return step.kind == StepKind::send ? Wire{step.channel, step.rail, r, peer} : Wire{step.channel, step.rail, peer, r};
  }

  bool can_run(std::size_t r, std::uint32_t i) {
    const BoundSchedule& schedule = ranks_[r].schedule;
    const BoundStep& step = schedule.steps[i];
    if (done_[r][i] || open_[r][i] > 0) return false;
    if (step.lane < 0) return true;
    const Lane& lane = schedule.lanes[static_cast<std::size_t>(step.lane)];
    if (schedule.lane_steps[lane.steps.first + lane_next_[r][static_cast<std::size_t>(step.lane)]] != i) return false;
    return step.kind == StepKind::send || !wires_[wire_to(r, step)].empty();
  }

  std::vector<std::byte> gather(SimulatedRank& rank, SpanList list) {
    std::vector<std::byte> bytes;
    for (std::uint32_t s = list.first; s < list.first + list.count; ++s) {
      const BoundSpan& span = rank.schedule.spans[s];
      const std::byte* from = rank.base(span.space) + span.offset;
      bytes.insert(bytes.end(), from, from + span.bytes);
    }
    return bytes;
  }

  void scatter(SimulatedRank& rank, SpanList list, const std::vector<std::byte>& bytes) {
    std::size_t at = 0;
    for (std::uint32_t s = list.first; s < list.first + list.count; ++s) {
      const BoundSpan& span = rank.schedule.spans[s];
      std::memcpy(rank.base(span.space) + span.offset, bytes.data() + at, span.bytes);
      at += span.bytes;
    }
  }

  std::vector<std::byte> combined(const std::vector<std::byte>& left, const std::vector<std::byte>& right) const {
    std::vector<std::byte> result(left.size());
    for (std::size_t at = 0; at < left.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t a, b;
      std::memcpy(&a, left.data() + at, sizeof a);
      std::memcpy(&b, right.data() + at, sizeof b);
      // That operands keep their order is the proof's business and the differential tests'; here it is the bytes' places.
      a = ordered_ ? std::max(a, b) : a + b;
      std::memcpy(result.data() + at, &a, sizeof a);
    }
    return result;
  }

  void execute(std::size_t r, std::uint32_t i) {
    SimulatedRank& rank = ranks_[r];
    const BoundStep& step = rank.schedule.steps[i];
    switch (step.kind) {
      case StepKind::send:
        wires_[wire_to(r, step)].push_back(gather(rank, step.source));
        break;
      case StepKind::copy:
        scatter(rank, step.destination, gather(rank, step.source));
        break;
      case StepKind::reduce:
        scatter(rank, step.destination, combined(gather(rank, step.source), gather(rank, step.operand)));
        break;
      default: {
        auto& wire = wires_[wire_to(r, step)];
        std::vector<std::byte> bytes = std::move(wire.front());
        wire.pop_front();
        if (step.kind == StepKind::recv_reduce) {
          const auto own = gather(rank, step.operand);
          bytes = step.incoming_left ? combined(bytes, own) : combined(own, bytes);
        }
        scatter(rank, step.destination, bytes);
      }
    }
    done_[r][i] = true;
    if (step.lane >= 0) ++lane_next_[r][static_cast<std::size_t>(step.lane)];
    for (std::uint32_t k = 0; k < step.successors.count; ++k)
      --open_[r][rank.schedule.successors[step.successors.first + k]];
  }

  std::vector<SimulatedRank>& ranks_;
  std::mt19937 random_;
  bool ordered_;
  std::vector<std::vector<std::uint32_t>> open_;
  std::vector<std::vector<bool>> done_;
  std::vector<std::vector<std::uint32_t>> lane_next_;
  std::map<Wire, std::deque<std::vector<std::byte>>> wires_;
};

}  // namespace plait
