// How a communicator comes to be kept to a schedule.
#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "core/attempt.h"
#include "plan/choose/motif_cost.h"
#include "runtime/enforcer/enforcer.h"
#include "runtime/enforcer/step_author.h"
#include "runtime/execution/decide.h"
#include "runtime/oob/oob.h"
#include "runtime/team/team.h"

namespace plait::runtime {
namespace {

// A schedule of a few rails has fewer; each is connected by itself.
constexpr std::size_t most_tracks = 32;
// For schedules that are yet to be made: so many classes of pieces.
constexpr int usual_classes = 3;

// Each connects all ranks or none.
Status connect(Communicator& communicator, EnforcerConnections& connections, bool talks) {
  for (std::size_t track = 0; track < connections.tracks.size(); ++track) {
    Result<std::unique_ptr<Team>> team = communicator.connect(TeamExtent::all_calls, nullptr);
    if (!team.ok()) return team.status();
    connections.teams.push_back(std::move(*team));
  }
  if (!talks) return {};
  Result<std::unique_ptr<Team>> talk = communicator.connect(TeamExtent::short_calls, nullptr);
  if (!talk.ok()) return talk.status();
  connections.talk = std::move(*talk);
  return {};
}

// Of each class those on all single channels, and on all together.
std::vector<PieceTrack> usual_tracks(std::size_t channels) {
  std::vector<PieceTrack> tracks;
  for (int piece_class = 0; piece_class < usual_classes; ++piece_class) {
    for (std::size_t channel = 0; channel < channels; ++channel) tracks.push_back({piece_class, 1u << channel});
    if (channels > 1) tracks.push_back({piece_class, (1u << channels) - 1});
  }
  return tracks;
}

Status check_ranks(const Communicator& communicator, const plan::step::StepSchedule& schedule) {
  if (schedule.ranks != communicator.ranks)
    return {Code::invalid, "it is for " + std::to_string(schedule.ranks) + " ranks, and there are " +
                               std::to_string(communicator.ranks)};
  if (schedule.operations.empty()) return {Code::invalid, "none of its operations is on MPI_COMM_WORLD"};
  return {};
}

Result<std::unique_ptr<KnownSchedule>> known(const Communicator& communicator, const plan::step::StepSchedule& schedule,
                                             const std::vector<PieceTrack>& tracks, std::uint64_t iterations_of_epoch) {
  if (Status fits = check_ranks(communicator, schedule); !fits.ok()) return fits;
  Result<std::unique_ptr<EnforcedPlans>> plans =
      EnforcedPlans::make(communicator.team->planner, communicator.rank, schedule);
  if (!plans.ok()) return plans.status();
  return know(schedule, tracks, std::move(*plans), iterations_of_epoch);
}

// What one rank brings before all connect, and after.
struct Parts {
  EnforcerConnections connections;  // the tracks alone
  std::unique_ptr<KnownSchedule> schedule;
};

template <class Before, class Control>
Status attach(Communicator& communicator, bool talks, Before&& before, Control&& control) {
  if (!is_set_up(communicator)) return {Code::unavailable, "the communicator is not set up"};
  Oob& oob = *communicator.team->oob;
  Parts parts;
  const Status planned = attempt([&]() -> Status {
    if (Status made = before(parts); !made.ok()) return made;
    const std::size_t tracks = parts.connections.tracks.size();
    if (tracks > most_tracks)
      return {Code::unsupported, "its pieces need " + std::to_string(tracks) + " connections of their own, more than " +
                                     std::to_string(most_tracks)};
    parts.connections.teams.reserve(tracks);
    return {};
  });
  if (Status all = oob.go_on_together(planned); !all.ok()) return planned.ok() ? all : planned;
  const Status connected = attempt([&] { return connect(communicator, parts.connections, talks); });
  if (Status all = oob.go_on_together(connected); !all.ok()) return connected.ok() ? all : connected;
  std::unique_ptr<Enforcer> enforcer;
  const Status made = attempt([&]() -> Status {
    std::unique_ptr<ScheduleControl> own = control(parts.connections);
    enforcer = std::make_unique<Enforcer>(communicator, std::move(parts.connections), std::move(parts.schedule),
                                          std::move(own));
    return {};
  });
  if (Status all = oob.go_on_together(made); !all.ok()) return made.ok() ? all : made;
  communicator.grouping = std::move(enforcer);
  return {};
}

}  // namespace

Status enforce(Communicator& communicator, const plan::step::StepSchedule& whole,
               plan::step::CallOrder order) noexcept {
  const auto before = [&](Parts& parts) -> Status {
    const plan::step::StepSchedule schedule = plan::step::part_of(whole, 0, order);
    parts.connections.tracks = tracks_of(schedule);
    Result<std::unique_ptr<KnownSchedule>> made = known(communicator, schedule, parts.connections.tracks, 0);
    if (!made.ok()) return made.status();
    parts.schedule = std::move(*made);
    return {};
  };
  const auto control = [](const EnforcerConnections&) { return std::unique_ptr<ScheduleControl>(); };
  return attempt([&] { return attach(communicator, false, before, control); });
}

ScheduleControl::Prepare usual_prepare(const Communicator& communicator) {
  const Communicator* of = &communicator;
  return [of](const plan::step::StepSchedule& schedule) -> Result<std::unique_ptr<KnownSchedule>> {
    const std::size_t channels = rail_shares(of->team->planner.machine()).size();
    return known(*of, schedule, usual_tracks(channels), ScheduleControl::iterations_between);
  };
}

Status enforce_own(Communicator& communicator, std::unique_ptr<ScheduleSource> source,
                   ScheduleControl::Prepare prepare) noexcept {
  const auto before = [&](Parts& parts) -> Status {
    parts.connections.tracks = usual_tracks(rail_shares(communicator.team->planner.machine()).size());
    return {};
  };
  const auto control = [&](const EnforcerConnections& connections) {
    return std::make_unique<ScheduleControl>(*connections.talk, std::move(source), std::move(prepare));
  };
  return attempt([&] { return attach(communicator, true, before, control); });
}

namespace {

// The planner's, with the network's rate as it was measured: a step's prediction is held against its time.
Machine exact_machine(const Team& team) {
  Machine machine = team.planner.machine();
  double rounded = 0;  // of the nodes' ports: the innermost network
  for (const LinkLevel& level : machine.levels)
    if (level.network) rounded = level.port_seconds_per_byte;
  if (team.network_seconds_per_byte <= 0 || rounded <= 0) return machine;
  for (LinkLevel& level : machine.levels)
    if (level.network) level.port_seconds_per_byte *= team.network_seconds_per_byte / rounded;
  return machine;
}

}  // namespace

std::unique_ptr<ScheduleSource> own_author(const Communicator& communicator, plan::step::CallOrder order) {
  if (communicator.rank != 0 || !is_set_up(communicator)) return nullptr;
  const Team& team = *communicator.team;
  return std::make_unique<StepAuthor>(team.planner.hierarchy(), exact_machine(team), order);
}

}  // namespace plait::runtime
