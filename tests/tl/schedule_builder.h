// Builds bound schedules by hand, for the tests and benchmarks of tl/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "plan/lower/bound_schedule.h"
#include "tl/layer.h"

namespace plait::tl {

class ScheduleBuilder {
 public:
  using Spans = std::vector<BoundSpan>;
  using Steps = std::vector<std::uint32_t>;

  explicit ScheduleBuilder(std::size_t element_bytes) { schedule_.element_bytes = element_bytes; }

  // Each returns the step's index. `after`: earlier steps.
  std::uint32_t send(ChannelKind channel, int peer, const Spans& source, const Steps& after = {}) {
    BoundStep step = message(StepKind::send, channel, peer, source);
    step.source = add_spans(source);
    return add(step, after);
  }
  std::uint32_t recv(ChannelKind channel, int peer, const Spans& destination, const Steps& after = {}) {
    BoundStep step = message(StepKind::recv, channel, peer, destination);
    step.destination = add_spans(destination);
    return add(step, after);
  }
  std::uint32_t recv_reduce(ChannelKind channel, int peer, const Spans& destination, const Spans& operand,
                            bool incoming_left, const Steps& after = {}) {
    BoundStep step = message(StepKind::recv_reduce, channel, peer, destination);
    step.destination = add_spans(destination);
    step.operand = add_spans(operand);
    step.incoming_left = incoming_left;
    return add(step, after);
  }
  std::uint32_t copy(const Spans& destination, const Spans& source, const Steps& after = {}) {
    BoundStep step = local(StepKind::copy, source);
    step.destination = add_spans(destination);
    step.source = add_spans(source);
    return add(step, after);
  }
  std::uint32_t reduce(const Spans& destination, const Spans& source, const Spans& operand, const Steps& after = {}) {
    BoundStep step = local(StepKind::reduce, source);
    step.destination = add_spans(destination);
    step.source = add_spans(source);
    step.operand = add_spans(operand);
    return add(step, after);
  }
  // All ranks of a node together.
  std::uint32_t collective(BoundShmCollective collective, const Spans& source, const Spans& destination,
                           const Steps& after = {}) {
    BoundStep step = message(StepKind::shm_collective, ChannelKind::shm, -1, {});
    step.bytes = collective.bytes;
    step.collective = static_cast<std::int32_t>(schedule_.collectives.size());
    step.source = add_spans(source);
    step.destination = add_spans(destination);
    schedule_.collectives.push_back(std::move(collective));
    return add(step, after);
  }

  // For spans to name.
  std::uint32_t add_grid(const RunGrid& grid) {
    schedule_.grids.push_back(grid);
    return static_cast<std::uint32_t>(schedule_.grids.size() - 1);
  }

  // Once; the builder is empty afterwards.
  BoundSchedule build() {
    for (const Steps& successors : successors_) {
      schedule_.steps[static_cast<std::size_t>(&successors - successors_.data())].successors =
          append(schedule_.successors, successors);
    }
    for (const Steps& steps : lane_steps_) schedule_.lanes.push_back({append(schedule_.lane_steps, steps)});
    return std::move(schedule_);
  }

 private:
  static std::uint64_t total(const Spans& spans) {
    std::uint64_t bytes = 0;
    for (const BoundSpan& span : spans) bytes += span.bytes;
    return bytes;
  }
  static SpanList append(std::vector<std::uint32_t>& list, const Steps& steps) {
    const SpanList place{static_cast<std::uint32_t>(list.size()), static_cast<std::uint32_t>(steps.size())};
    list.insert(list.end(), steps.begin(), steps.end());
    return place;
  }
  SpanList add_spans(const Spans& spans) {
    const SpanList place{static_cast<std::uint32_t>(schedule_.spans.size()), static_cast<std::uint32_t>(spans.size())};
    schedule_.spans.insert(schedule_.spans.end(), spans.begin(), spans.end());
    for (const BoundSpan& span : spans) {
      std::uint64_t& end = span.space == Space::input    ? schedule_.input_bytes
                           : span.space == Space::output ? schedule_.output_bytes
                                                         : schedule_.scratch_bytes;
      const std::uint64_t behind = span.offset + span.bytes;
      end = std::max(end, span.grid == no_grid ? behind : schedule_.grids[span.grid].offset_of(behind - 1) + 1);
    }
    return place;
  }
  BoundStep local(StepKind kind, const Spans& spans) {
    BoundStep step{};
    step.kind = kind;
    step.peer = -1;
    step.collective = -1;
    step.bytes = total(spans);
    step.lane = -1;
    return step;
  }
  BoundStep message(StepKind kind, ChannelKind channel, int peer, const Spans& spans) {
    BoundStep step = local(kind, spans);
    step.channel = channel;
    step.peer = peer;
    const auto key = std::pair{std::pair{kind == StepKind::send, channel}, peer};
    step.lane = lane_of_.try_emplace(key, static_cast<std::int32_t>(lane_of_.size())).first->second;
    lane_steps_.resize(lane_of_.size());
    schedule_.channels_used.add(channel);
    return step;
  }
  std::uint32_t add(const BoundStep& step, const Steps& after) {
    const std::uint32_t index = static_cast<std::uint32_t>(schedule_.steps.size());
    schedule_.steps.push_back(step);
    schedule_.steps.back().predecessors = static_cast<std::uint32_t>(after.size());
    successors_.emplace_back();
    for (const std::uint32_t earlier : after) successors_[earlier].push_back(index);
    if (step.lane >= 0) lane_steps_[static_cast<std::size_t>(step.lane)].push_back(index);
    return index;
  }

  BoundSchedule schedule_;
  std::vector<Steps> successors_;
  std::vector<Steps> lane_steps_;
  std::map<std::pair<std::pair<bool, ChannelKind>, int>, std::int32_t> lane_of_;
};

}  // namespace plait::tl
