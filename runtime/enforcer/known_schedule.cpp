#include "runtime/enforcer/known_schedule.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plan/step/piece_classes.h"

namespace plait::runtime {

std::vector<PieceTrack> tracks_of(const plan::step::StepSchedule& schedule) {
  const plan::step::ChannelLines lines(schedule);
  const std::vector<std::vector<int>> classes = plan::step::piece_classes(schedule);
  std::vector<PieceTrack> tracks;
  for (std::size_t operation = 0; operation < classes.size(); ++operation)
    for (std::size_t piece = 0; piece < classes[operation].size(); ++piece) {
      const PieceTrack track{.piece_class = classes[operation][piece],
                             .channels = lines.channels_of(static_cast<int>(operation), static_cast<int>(piece))};
      if (std::ranges::find(tracks, track) == tracks.end()) tracks.push_back(track);
    }
  return tracks;
}

Result<std::unique_ptr<KnownSchedule>> know(const plan::step::StepSchedule& schedule,
                                            const std::vector<PieceTrack>& tracks, std::unique_ptr<EnforcedPlans> plans,
                                            std::uint64_t iterations_of_epoch) {
  auto known =
      std::make_unique<KnownSchedule>(KnownSchedule{.plans = std::move(plans),
                                                    .matcher = CallMatcher(schedule.operations, iterations_of_epoch),
                                                    .lines = plan::step::ChannelLines(schedule),
                                                    .track_of = {},
                                                    .pieces_on = {},
                                                    .seconds = schedule.seconds});
  const std::vector<std::vector<int>> classes = plan::step::piece_classes(schedule);
  for (std::size_t number = 0; number < classes.size(); ++number) {
    const int operation = static_cast<int>(number);
    known->track_of.emplace_back();
    std::vector<std::vector<int>>& on = known->pieces_on.emplace_back(tracks.size());
    for (int piece = 0; piece < std::ssize(classes[number]); ++piece) {
      const PieceTrack track{.piece_class = classes[number][static_cast<std::size_t>(piece)],
                             .channels = known->lines.channels_of(operation, piece)};
      const auto found = std::ranges::find(tracks, track);
      if (found == tracks.end())
        return Status(Code::unsupported, "operation \"" + schedule.operations[number].name +
                                             "\" has a piece that nothing is connected for");
      known->track_of.back().push_back(static_cast<std::size_t>(found - tracks.begin()));
      on[known->track_of.back().back()].push_back(piece);
    }
    for (std::vector<int>& pieces : on)
      std::ranges::sort(pieces, {}, [&](int piece) { return known->lines.place_of(operation, piece); });
  }
  return known;
}

}  // namespace plait::runtime
