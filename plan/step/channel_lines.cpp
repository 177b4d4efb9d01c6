#include "plan/step/channel_lines.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace plait::plan::step {
namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

int most_ahead(const std::vector<ScheduledPiece>& order) {
  int most = 0;
  for (const ScheduledPiece& place : order) most = std::max(most, place.ahead);
  return most;
}

}  // namespace

ChannelLines::ChannelLines(const StepSchedule& schedule) : operations_(schedule.operations.size()), end_(no_end) {
  for (const ScheduledOperation& operation : schedule.operations)
    channels_of_.emplace_back(static_cast<std::size_t>(operation.pieces), 0u);
  for (std::size_t channel = 0; channel < schedule.channels.size(); ++channel) {
    lines_.push_back({.order = schedule.channels[channel].order});
    const std::vector<ScheduledPiece>& order = lines_.back().order;
    std::vector<std::vector<std::size_t>>& places = place_of_.emplace_back(operations_);
    for (std::size_t index = 0; index < order.size(); ++index) {
      std::vector<std::size_t>& of_operation = places[static_cast<std::size_t>(order[index].operation)];
      of_operation.resize(std::max(of_operation.size(), static_cast<std::size_t>(order[index].piece) + 1));
      of_operation[static_cast<std::size_t>(order[index].piece)] = index;
    }
    for (const ScheduledPiece& place : order)
      channels_of_[static_cast<std::size_t>(place.operation)][static_cast<std::size_t>(place.piece)] |= 1u << channel;
  }
  begin(0);
}

void ChannelLines::begin(std::uint64_t iteration) {
  first_iteration_ = iteration;
  end_ = no_end;
  for (Line& line : lines_) {
    line.next = 0;
    line.round = -most_ahead(line.order);
    line.over = line.order.empty();
    settle(line);
  }
}

void ChannelLines::end_before(std::uint64_t call) {
  end_ = call;
  for (Line& line : lines_) settle(line);
}

// Nothing: of an iteration before the first.
std::optional<std::uint64_t> ChannelLines::call_at(const Line& line, std::size_t place, std::int64_t round) const {
  const ScheduledPiece& piece = line.order[place];
  const std::int64_t iteration = round + piece.ahead;
  if (iteration < 0) return {};
  return first_call(first_iteration_ + static_cast<std::uint64_t>(iteration)) +
         static_cast<std::uint64_t>(piece.operation);
}

// To the next place that has something to run.
void ChannelLines::settle(Line& line) const {
  while (!line.over) {
    const std::optional<std::uint64_t> call = call_at(line, line.next, line.round);
    if (call.has_value() && *call < end_) return;
    const bool past = line.round >= 0 && first_call(first_iteration_ + static_cast<std::uint64_t>(line.round)) >= end_;
    if (past) line.over = true;
    if (++line.next < line.order.size()) continue;
    line.next = 0;
    ++line.round;
  }
}

std::optional<CallPiece> ChannelLines::head(int channel) const {
  const Line& line = lines_[static_cast<std::size_t>(channel)];
  if (line.over) return {};
  return CallPiece{.call = *call_at(line, line.next, line.round), .piece = line.order[line.next].piece};
}

void ChannelLines::pass(int channel) {
  Line& line = lines_[static_cast<std::size_t>(channel)];
  if (++line.next == line.order.size()) {
    line.next = 0;
    ++line.round;
  }
  settle(line);
}

bool ChannelLines::behind_head(int channel, const CallPiece& piece) const {
  const Line& line = lines_[static_cast<std::size_t>(channel)];
  if (line.over) return false;
  const auto operation = static_cast<std::size_t>(operation_of(piece.call));
  const std::size_t index =
      place_of_[static_cast<std::size_t>(channel)][operation][static_cast<std::size_t>(piece.piece)];
  const std::int64_t round =
      static_cast<std::int64_t>(iteration_of(piece.call) - first_iteration_) - line.order[index].ahead;
  return round > line.round || (round == line.round && index > line.next);
}

std::size_t ChannelLines::place_of(int operation, int piece) const {
  const auto channel = static_cast<std::size_t>(std::countr_zero(channels_of(operation, piece)));
  return place_of_[channel][static_cast<std::size_t>(operation)][static_cast<std::size_t>(piece)];
}

namespace {

// Pieces that have run, by call from the first on.
class Trial {
 public:
  Trial(const StepSchedule& schedule, const std::vector<std::vector<std::vector<int>>>& after)
      : lines_(schedule), after_(after), operations_(schedule.operations.size()) {}

  // Runs what can run, up to the end of so many iterations. What is left then, if anything.
  std::optional<CallPiece> run(std::uint64_t iterations) {
    done_.assign(iterations * operations_, 0);
    lines_.end_before(iterations * operations_);
    while (move_on()) {
    }
    for (int channel = 0; channel < lines_.channels(); ++channel)
      if (const auto head = lines_.head(channel); head.has_value()) return head;
    return {};
  }

 private:
  bool may_run(const CallPiece& piece) const {
    const auto operation = static_cast<std::size_t>(lines_.operation_of(piece.call));
    for (const int before : after_[operation][static_cast<std::size_t>(piece.piece)])
      if ((done_[piece.call] >> before & 1) == 0) return false;
    for (std::uint32_t left = lines_.channels_of(static_cast<int>(operation), piece.piece); left != 0; left &= left - 1)
      if (lines_.head(std::countr_zero(left)) != piece) return false;
    return true;
  }
  bool move_on() {
    bool moved = false;
    for (int channel = 0; channel < lines_.channels(); ++channel) {
      const auto head = lines_.head(channel);
      if (!head.has_value() || !may_run(*head)) continue;
      done_[head->call] |= std::uint64_t{1} << head->piece;
      std::uint32_t left = lines_.channels_of(lines_.operation_of(head->call), head->piece);
      for (; left != 0; left &= left - 1) lines_.pass(std::countr_zero(left));
      moved = true;
    }
    return moved;
  }

  ChannelLines lines_;
  const std::vector<std::vector<std::vector<int>>>& after_;
  std::uint64_t operations_;
  std::vector<std::uint64_t> done_;
};

}  // namespace

Status check_order(const StepSchedule& schedule, const std::vector<std::vector<std::vector<int>>>& after) {
  const std::uint64_t iterations = 2 * most_steps_ahead + 2;  // from the first on it is the same over and over
  const std::optional<CallPiece> left = Trial(schedule, after).run(iterations);
  if (!left.has_value()) return {};
  const std::size_t operation = left->call % schedule.operations.size();
  return {Code::invalid, "piece " + std::to_string(left->piece) + " of \"" + schedule.operations[operation].name +
                             "\" waits for pieces that wait for it"};
}

}  // namespace plait::plan::step
