// All ranks of a job in one process: their bound schedules run on real bytes, in an order that a seed decides.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "plan/lower/bound_schedule.h"

namespace plait::plan {

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

// Runs until nothing can move; returns whether every step of every rank is complete. Values are 32 bits and
// combined by `combine`.
class SimulatedJob {
 public:
  using Combine = std::uint32_t (*)(std::uint32_t left, std::uint32_t right);

  SimulatedJob(std::vector<SimulatedRank>& ranks, unsigned seed, Combine combine)
      : ranks_(ranks), random_(seed), combine_(combine) {}

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
    return step.kind == StepKind::send ? Wire{step.channel, step.rail, r, peer}
                                       : Wire{step.channel, step.rail, peer, r};
  }

  bool can_run(std::size_t r, std::uint32_t i) {
    const BoundSchedule& schedule = ranks_[r].schedule;
    const BoundStep& step = schedule.steps[i];
    if (done_[r][i] || open_[r][i] > 0) return false;
    if (step.lane < 0) return true;
    const Lane& lane = schedule.lanes[static_cast<std::size_t>(step.lane)];
    if (schedule.lane_steps[lane.steps.first + lane_next_[r][static_cast<std::size_t>(step.lane)]] != i) return false;
    if (step.kind == StepKind::shm_collective)
      return all_can_run(schedule.collectives[static_cast<std::size_t>(step.collective)]);
    return step.kind == StepKind::send || !wires_[wire_to(r, step)].empty();
  }

  // The shared-memory collective that is the rank's next; nothing when it must wait for other steps.
  std::optional<std::uint32_t> next_shm_collective(std::size_t r) const {
    const BoundSchedule& schedule = ranks_[r].schedule;
    for (std::size_t l = 0; l < schedule.lanes.size(); ++l) {
      const SpanList steps = schedule.lanes[l].steps;
      if (lane_next_[r][l] == steps.count) continue;
      const std::uint32_t next = schedule.lane_steps[steps.first + lane_next_[r][l]];
      if (schedule.steps[next].kind == StepKind::shm_collective && open_[r][next] == 0) return next;
    }
    return std::nullopt;
  }

  bool all_can_run(const BoundShmCollective& collective) const {
    return std::all_of(collective.members.begin(), collective.members.end(), [&](std::int32_t member) {
      return next_shm_collective(static_cast<std::size_t>(member)).has_value();
    });
  }

  // What each member gives is there before any gets something.
  void execute_collective(const BoundShmCollective& collective) {
    std::vector<std::uint32_t> steps;
    std::vector<std::vector<std::byte>> given;
    for (const std::int32_t member : collective.members) {
      const auto r = static_cast<std::size_t>(member);
      steps.push_back(*next_shm_collective(r));
      given.push_back(gather(ranks_[r], ranks_[r].schedule.steps[steps.back()].source));
    }
    std::vector<std::byte> all = given.front();
    for (std::size_t m = 1; m < given.size(); ++m) {
      if (reduces(collective.kind))
        all = combined(all, given[m]);
      else
        all.insert(all.end(), given[m].begin(), given[m].end());
    }
    for (std::size_t m = 0; m < steps.size(); ++m) {
      const auto r = static_cast<std::size_t>(collective.members[m]);
      const BoundStep& step = ranks_[r].schedule.steps[steps[m]];
      const BoundShmCollective& own = ranks_[r].schedule.collectives[static_cast<std::size_t>(step.collective)];
      scatter(ranks_[r], step.destination, taken(own, all));
      complete(r, steps[m]);
    }
  }

  // Out of what all give, one after the other, or combined.
  std::vector<std::byte> taken(const BoundShmCollective& collective, const std::vector<std::byte>& all) const {
    const auto self = static_cast<std::size_t>(collective.self);
    const auto cut = [&](std::uint64_t first, std::uint64_t bytes) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      return std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    };
    const std::vector<std::uint64_t>& at = collective.piece_offsets;
    std::vector<std::byte> bytes;
    switch (collective.kind) {
      case ShmCollectiveKind::reduce_scatter:
      case ShmCollectiveKind::scatter:
        return cut(at[self], collective.takes_own ? at[self + 1] - at[self] : 0);
      case ShmCollectiveKind::all_to_all:
        for (std::size_t m = 0; m < collective.members.size(); ++m) {
          const auto piece = cut((m * collective.members.size() + self) * collective.bytes, collective.bytes);
          bytes.insert(bytes.end(), piece.begin(), piece.end());
        }
        return bytes;
      case ShmCollectiveKind::all_gather:
      case ShmCollectiveKind::gather:
        bytes = all;
        if (!collective.takes_own)
          bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at[self]),
                      bytes.begin() + static_cast<std::ptrdiff_t>(at[self + 1]));
        return bytes;
      default:
        return all;
    }
  }

  // Calls visit(address, bytes) for each run of the spans.
  template <class Visit>
  void for_each_run(SimulatedRank& rank, SpanList list, Visit visit) {
    for (std::uint32_t s = list.first; s < list.first + list.count; ++s) {
      const BoundSpan& span = rank.schedule.spans[s];
      std::byte* base = rank.base(span.space);
      if (span.grid == no_grid) {
        visit(base + span.offset, span.bytes);
        continue;
      }
      const RunGrid& grid = rank.schedule.grids[span.grid];
      for (std::uint64_t at = span.offset, end = at + span.bytes; at < end;) {
        const std::uint64_t run = std::min(grid.run - at % grid.run, end - at);
        visit(base + grid.offset_of(at), run);
        at += run;
      }
    }
  }

  std::vector<std::byte> gather(SimulatedRank& rank, SpanList list) {
    std::vector<std::byte> bytes;
    for_each_run(rank, list,
                 [&](const std::byte* from, std::uint64_t run) { bytes.insert(bytes.end(), from, from + run); });
    return bytes;
  }

  void scatter(SimulatedRank& rank, SpanList list, const std::vector<std::byte>& bytes) {
    const std::byte* from = bytes.data();
    for_each_run(rank, list, [&](std::byte* to, std::uint64_t run) {
      std::memcpy(to, from, run);
      from += run;
    });
  }

  std::vector<std::byte> combined(const std::vector<std::byte>& left, const std::vector<std::byte>& right) const {
    std::vector<std::byte> result(left.size());
    for (std::size_t at = 0; at < left.size(); at += sizeof(std::uint32_t)) {
      std::uint32_t a, b;
      std::memcpy(&a, left.data() + at, sizeof a);
      std::memcpy(&b, right.data() + at, sizeof b);
      a = combine_(a, b);
      std::memcpy(result.data() + at, &a, sizeof a);
    }
    return result;
  }

  void execute(std::size_t r, std::uint32_t i) {
    SimulatedRank& rank = ranks_[r];
    const BoundStep& step = rank.schedule.steps[i];
    switch (step.kind) {
      case StepKind::shm_collective:
        return execute_collective(rank.schedule.collectives[static_cast<std::size_t>(step.collective)]);
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
    complete(r, i);
  }

  void complete(std::size_t r, std::uint32_t i) {
    const SimulatedRank& rank = ranks_[r];
    const BoundStep& step = rank.schedule.steps[i];
    done_[r][i] = true;
    if (step.lane >= 0) ++lane_next_[r][static_cast<std::size_t>(step.lane)];
    for (std::uint32_t k = 0; k < step.successors.count; ++k)
      --open_[r][rank.schedule.successors[step.successors.first + k]];
  }

  std::vector<SimulatedRank>& ranks_;
  std::mt19937 random_;
  Combine combine_;
  std::vector<std::vector<std::uint32_t>> open_;
  std::vector<std::vector<bool>> done_;
  std::vector<std::vector<std::uint32_t>> lane_next_;
  std::map<Wire, std::deque<std::vector<std::byte>>> wires_;
};

}  // namespace plait::plan
