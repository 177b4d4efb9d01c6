// How a communicator comes to be kept to a schedule.
#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "core/attempt.h"
#include "runtime/enforcer/enforcer.h"
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

Status attach(Communicator& communicator, const plan::step::StepSchedule& schedule) {
  if (!is_set_up(communicator)) return {Code::unavailable, "the communicator is not set up"};
  if (schedule.ranks != communicator.ranks)
    return {Code::invalid, "it is for " + std::to_string(schedule.ranks) + " ranks, and there are " +
                               std::to_string(communicator.ranks)};
  if (schedule.operations.empty()) return {Code::invalid, "none of its operations is on MPI_COMM_WORLD"};
  Oob& oob = *communicator.team->oob;
  std::unique_ptr<EnforcedPlans> plans;
  EnforcerConnections connections;
  const Status planned = attempt([&]() -> Status {
    Result<std::unique_ptr<EnforcedPlans>> made =
        EnforcedPlans::make(communicator.team->planner, communicator.rank, communicator.ranks, schedule);
    if (!made.ok()) return made.status();
    plans = std::move(*made);
    connections.channels = sets_of_channels(schedule);
    if (connections.channels.size() > most_sets)
      return {Code::unsupported, "its pieces are on " + std::to_string(connections.channels.size()) +
                                     " different sets of channels, more than " + std::to_string(most_sets)};
    connections.teams.reserve(connections.channels.size());
    return {};
  });
  if (Status all = oob.go_on_together(planned); !all.ok()) return planned.ok() ? all : planned;
  const Status connected = attempt([&] { return connect(communicator, connections); });
  if (Status all = oob.go_on_together(connected); !all.ok()) return connected.ok() ? all : connected;
  std::unique_ptr<Enforcer> enforcer;
  const Status made = attempt([&]() -> Status {
    enforcer = std::make_unique<Enforcer>(communicator, schedule, std::move(plans), std::move(connections));
    return {};
  });
  if (Status all = oob.go_on_together(made); !all.ok()) return made.ok() ? all : made;
  communicator.grouping = std::move(enforcer);
  return {};
}

}  // namespace

Status enforce(Communicator& communicator, const plan::step::StepSchedule& schedule) noexcept {
  return attempt([&] { return attach(communicator, schedule); });
}

}  // namespace plait::runtime
