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
constexpr std::size_t most_sets = 32;

// The sets of channels that pieces are on, each once.
std::vector<std::uint32_t> sets_of_channels(const plan::step::StepSchedule& schedule) {
  const plan::step::ChannelLines lines(schedule);
  std::vector<std::uint32_t> sets;
  for (std::size_t operation = 0; operation < schedule.operations.size(); ++operation)
    for (int piece = 0; piece < schedule.operations[operation].pieces; ++piece) {
      const std::uint32_t channels = lines.channels_of(static_cast<int>(operation), piece);
      if (std::ranges::find(sets, channels) == sets.end()) sets.push_back(channels);
    }
  return sets;
}

// Each connects all ranks or none.
Status connect(Communicator& communicator, EnforcerConnections& connections) {
  for (std::size_t set = 0; set < connections.channels.size(); ++set) {
    Result<std::unique_ptr<Team>> team = communicator.connect(TeamExtent::all_calls, nullptr);
    if (!team.ok()) return team.status();
    connections.teams.push_back(std::move(*team));
  }
  Result<std::unique_ptr<Team>> votes = communicator.connect(TeamExtent::short_calls, nullptr);
  if (!votes.ok()) return votes.status();
  connections.votes = std::move(*votes);
  return {};
}

// All single ones, and all together.
std::vector<std::uint32_t> usual_sets(std::size_t channels) {
  std::vector<std::uint32_t> sets;
  for (std::size_t channel = 0; channel < channels; ++channel) sets.push_back(1u << channel);
  if (channels > 1) sets.push_back((1u << channels) - 1);
  return sets;
}

Status check_sets(const std::vector<std::uint32_t>& there, const plan::step::StepSchedule& schedule) {
  for (const std::uint32_t set : sets_of_channels(schedule))
    if (std::ranges::find(there, set) == there.end())
      return {Code::unsupported, "a piece is on channels that nothing is connected for"};
  return {};
}

Status check_ranks(const Communicator& communicator, const plan::step::StepSchedule& schedule) {
  if (schedule.ranks != communicator.ranks)
    return {Code::invalid, "it is for " + std::to_string(schedule.ranks) + " ranks, and there are " +
                               std::to_string(communicator.ranks)};
  if (schedule.operations.empty()) return {Code::invalid, "none of its operations is on MPI_COMM_WORLD"};
  return {};
}

Result<std::unique_ptr<KnownSchedule>> known(const Communicator& communicator, const plan::step::StepSchedule& schedule,
                                             std::uint64_t iterations_of_epoch) {
  if (Status fits = check_ranks(communicator, schedule); !fits.ok()) return fits;
  Result<std::unique_ptr<EnforcedPlans>> plans =
      EnforcedPlans::make(communicator.team->planner, communicator.rank, communicator.ranks, schedule);
  if (!plans.ok()) return plans.status();
  return std::make_unique<KnownSchedule>(schedule, std::move(*plans), iterations_of_epoch);
}

// What one rank brings before all connect, and after.
struct Parts {
  EnforcerConnections connections;  // the sets of channels alone
  std::unique_ptr<KnownSchedule> schedule;
};

template <class Before, class Control>
Status attach(Communicator& communicator, Before&& before, Control&& control) {
  if (!is_set_up(communicator)) return {Code::unavailable, "the communicator is not set up"};
  Oob& oob = *communicator.team->oob;
  Parts parts;
  const Status planned = attempt([&]() -> Status {
    if (Status made = before(parts); !made.ok()) return made;
    const std::size_t sets = parts.connections.channels.size();
    if (sets > most_sets)
      return {Code::unsupported, "its pieces are on " + std::to_string(sets) +
                                     " different sets of channels, more than " + std::to_string(most_sets)};
    parts.connections.teams.reserve(sets);
    return {};
  });
  if (Status all = oob.go_on_together(planned); !all.ok()) return planned.ok() ? all : planned;
  const Status connected = attempt([&] { return connect(communicator, parts.connections); });
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

Status enforce(Communicator& communicator, const plan::step::StepSchedule& schedule) noexcept {
  const auto before = [&](Parts& parts) -> Status {
    Result<std::unique_ptr<KnownSchedule>> made = known(communicator, schedule, 0);
    if (!made.ok()) return made.status();
    parts.schedule = std::move(*made);
    parts.connections.channels = sets_of_channels(schedule);
    return {};
  };
  const auto control = [](const EnforcerConnections&) { return std::unique_ptr<ScheduleControl>(); };
  return attempt([&] { return attach(communicator, before, control); });
}

ScheduleControl::Prepare usual_prepare(const Communicator& communicator) {
  const Communicator* of = &communicator;
  return [of](const plan::step::StepSchedule& schedule) -> Result<std::unique_ptr<KnownSchedule>> {
    const std::vector<std::uint32_t> sets = usual_sets(rail_shares(of->team->planner.machine()).size());
    if (Status there = check_sets(sets, schedule); !there.ok()) return there;
    return known(*of, schedule, ScheduleControl::iterations_between);
  };
}

Status enforce_own(Communicator& communicator, std::unique_ptr<ScheduleSource> source,
                   ScheduleControl::Prepare prepare) noexcept {
  const auto before = [&](Parts& parts) -> Status {
    parts.connections.channels = usual_sets(rail_shares(communicator.team->planner.machine()).size());
    return {};
  };
  const auto control = [&](const EnforcerConnections& connections) {
    return std::make_unique<ScheduleControl>(*connections.votes, std::move(source), std::move(prepare));
  };
  return attempt([&] { return attach(communicator, before, control); });
}

std::unique_ptr<ScheduleSource> own_author(const Communicator& communicator) {
  if (communicator.rank != 0 || !is_set_up(communicator)) return nullptr;
  const Planner& planner = communicator.team->planner;
  return std::make_unique<StepAuthor>(planner.hierarchy(), planner.machine());
}

}  // namespace plait::runtime
