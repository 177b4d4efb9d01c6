#include "runtime/team/team.h"

#include <sched.h>

#include <exception>
#include <utility>

#include "core/attempt.h"
#include "core/log.h"
#include "runtime/job/job.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// While the engine waits.
void move_on(void* context) {
  auto& team = *static_cast<Team*>(context);
  team.look_at_notice();
  team.move_operations_on();
}

Status agree(void* context, const Status& cause) noexcept {
  return static_cast<Team*>(context)->agree_on_reason(cause);
}

}  // namespace

Channels Connections::all() const {
  Channels all{};
  for (std::size_t kind = 0; kind < channels.size(); ++kind) all[kind] = channels[kind].get();
  return all;
}

Status Connections::peer_failure() const {
  for (const auto& channel : channels) {
    if (channel == nullptr || !traits(channel->kind()).segment) continue;
    if (Status failure = channel->peer_failure(); !failure.ok()) return failure;
  }
  return {};
}

Team::Team(std::unique_ptr<FailureNotice> told, Connections made, Hierarchy hierarchy, int rank, PlannerOptions options,
           WaitSettings waits)
    : notice(std::move(told)),
      connections(std::move(made)),
      move_operations_on(waits.move_operations_on),
      planner(std::move(hierarchy), rank, std::move(options), &job().plans),
      engine(connections.all(), {.yield = waits.yield,
                                 .host_progress = move_on,
                                 .context = this,
                                 .failure = &notice->heard(),
                                 .agree_on_reason = agree}),
      trials(planner),
      schedules(planner, trials, rank, planner.hierarchy().ranks()),
      host_sizes(planner.host_sizes()),
      slots(planner.hierarchy().ranks()),
      posted_slots(planner.hierarchy().ranks()) {}

namespace {

Status first_reason(Team& team, const Status& failure) {
  constexpr std::uint64_t longest_ns = 500'000'000;
  if (failure.code() != Code::peer_left) return failure;
  const std::uint64_t wait_ns = std::exchange(team.awaited_reason, true) ? 0 : longest_ns;
  const std::uint64_t until = monotonic_ns() + wait_ns;
  while (true) {
    team.look_at_notice();
    if (const Status& heard = team.notice->heard(); heard.code() == Code::peer_failed) return heard;
    if (Status marked = team.connections.peer_failure(); marked.code() == Code::peer_failed) return marked;
    if (monotonic_ns() >= until) return failure;
    sched_yield();
  }
}

}  // namespace

Status Team::reason_of(const Status& failure) noexcept {
  try {
    return first_reason(*this, failure);
  } catch (const std::exception& exception) {  // which must not keep the failure from whoever waits for it
    return status_of(exception);
  }
}

Status Team::agree_on_reason(const Status& failure) noexcept {
  Status reason = reason_of(failure);
  tell(reason);
  return reason;
}

Status Team::break_off(const Status& failure, bool may_drive_host) noexcept {
  Status reason;
  try {
    reason = may_drive_host ? agree_on_reason(failure) : failure;
  } catch (const std::exception& exception) {
    reason = status_of(exception);
  }
  close(reason);
  return reason;
}

// Said here too: the host's own words of the error that ends the job go another way, on which its launcher loses them
// once some rank has ended the job (Open MPI 4.1: docs/soak.md).
void Team::tell(const Status& cause) noexcept {
  if (cause.code() != Code::peer_left && !known_to_others() && !notice->told()) try {
      warn("a collective call has failed: " + cause.message());
    } catch (const std::exception&) {  // the others are told all the same
    }
  notice->tell(cause);
}

bool Team::known_to_others() noexcept {
  if (notice->heard().code() == Code::peer_failed) return true;
  try {
    return connections.peer_failure().code() == Code::peer_failed;
  } catch (const std::exception&) {  // no memory for its text: there is one
    return true;
  }
}

void Team::give_up(const Status& cause) noexcept {
  tell(cause);  // before its connections are found closed
  close(cause);
}

void Team::close(const Status& cause) noexcept {
  try {
    engine.give_up(cause);
  } catch (const std::exception&) {  // a channel that could not be told why
  }
}

Team::~Team() {
  if (trace != nullptr) keep_trace(std::move(trace));
}

}  // namespace plait::runtime
