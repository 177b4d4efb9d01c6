#include "plan/step/piece_classes.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace plait::plan::step {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// Pieces by a number of their own, in the order of the operations.
struct PieceNumbers {
  explicit PieceNumbers(const StepSchedule& schedule) {
    for (const ScheduledOperation& operation : schedule.operations) {
      first.push_back(pieces);
      pieces += static_cast<std::size_t>(operation.pieces);
    }
  }
  std::size_t of(const ScheduledPiece& place) const {
    return first[static_cast<std::size_t>(place.operation)] + static_cast<std::size_t>(place.piece);
  }
  std::vector<std::size_t> first;
  std::size_t pieces = 0;
};

using Pairs = std::vector<std::vector<bool>>;

// Both of a pair are marked where one of a later call stands before the other one. So many rounds that pieces which are
// ahead meet all that they may be ahead of, from the last place back to the first.
void mark_inversions(const StepSchedule& schedule, const PieceNumbers& numbers, const ScheduledChannel& channel,
                     Pairs& inverted) {
  int most_ahead = 0;
  for (const ScheduledPiece& place : channel.order) most_ahead = std::max(most_ahead, place.ahead);
  const auto operations = static_cast<std::int64_t>(schedule.operations.size());
  std::vector<std::int64_t> earliest(numbers.pieces, never);  // call of each piece, among what comes later
  for (int round = most_ahead + 1; round >= 0; --round) {
    for (auto place = channel.order.rbegin(); place != channel.order.rend(); ++place) {
      const std::int64_t call = (round + place->ahead) * operations + place->operation;
      const std::size_t own = numbers.of(*place);
      for (std::size_t other = 0; other < numbers.pieces; ++other)
        if (earliest[other] < call) inverted[own][other] = inverted[other][own] = true;
      earliest[own] = std::min(earliest[own], call);
    }
  }
}

}  // namespace

std::vector<std::vector<int>> piece_classes(const StepSchedule& schedule) {
  const PieceNumbers numbers(schedule);
  Pairs inverted(numbers.pieces, std::vector<bool>(numbers.pieces, false));
  for (const ScheduledChannel& channel : schedule.channels) mark_inversions(schedule, numbers, channel, inverted);
  std::vector<std::vector<std::size_t>> members;  // by class
  std::vector<std::vector<int>> classes;
  for (std::size_t operation = 0; operation < schedule.operations.size(); ++operation) {
    std::vector<int>& own = classes.emplace_back();
    for (int piece = 0; piece < schedule.operations[operation].pieces; ++piece) {
      const std::size_t number = numbers.first[operation] + static_cast<std::size_t>(piece);
      const auto fits = [&](const std::vector<std::size_t>& others) {
        return std::ranges::none_of(others, [&](std::size_t other) { return inverted[number][other]; });
      };
      const auto found = std::ranges::find_if(members, fits);
      own.push_back(static_cast<int>(found - members.begin()));
      if (found == members.end())
        members.push_back({number});
      else
        found->push_back(number);
    }
  }
  return classes;
}

}  // namespace plait::plan::step
