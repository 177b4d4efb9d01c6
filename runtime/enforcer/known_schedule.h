// A schedule that a communicator's calls are looked up in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "plan/step/channel_lines.h"
#include "plan/step/schedule_file.h"
#include "runtime/enforcer/call_matcher.h"
#include "runtime/enforcer/enforced_plans.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Connections of their own have the pieces of a class (plan/step/piece_classes.h) that are on the same channels: they
// run one after the other there, in the order of the program's calls, on all ranks.
struct PieceTrack {
  int piece_class = 0;
  std::uint32_t channels = 0;  // bits
  bool operator==(const PieceTrack&) const = default;
};

// Those that the schedule needs, each once.
std::vector<PieceTrack> tracks_of(const plan::step::StepSchedule& schedule);

struct KnownSchedule {
  std::unique_ptr<EnforcedPlans> plans;
  CallMatcher matcher;
  plan::step::ChannelLines lines;
  std::vector<std::vector<std::size_t>> track_of;        // by operation and piece
  std::vector<std::vector<std::vector<int>>> pieces_on;  // by operation and track, in their order
  double seconds = 0;                                    // of an iteration, predicted
  bool in_force = true;                                  // false: it is only seen which calls are whose
};

// Fails (unsupported) where it needs others than these.
Result<std::unique_ptr<KnownSchedule>> know(const plan::step::StepSchedule& schedule,
                                            const std::vector<PieceTrack>& tracks, std::unique_ptr<EnforcedPlans> plans,
                                            std::uint64_t iterations_of_epoch);

}  // namespace plait::runtime
