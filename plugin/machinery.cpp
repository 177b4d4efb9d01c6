#include "plugin/machinery.h"

#include <sched.h>

#include <exception>
#include <utility>

#include "core/log.h"
#include "plugin/errors.h"
#include "runtime/job/job.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

// While the engine waits.
void move_on(void* context) {
  auto& machinery = *static_cast<Machinery*>(context);
  machinery.look_at_notice();
  machinery.move_operations_on();
}

Status agree(void* context, const Status& cause) noexcept {
  return static_cast<Machinery*>(context)->agree_on_reason(cause);
}

}  // namespace

Machinery::Machinery(Connections made, Hierarchy hierarchy, int rank, PlannerOptions options, FailureNotice told,
                     bool yield, void (*move_on_too)())
    : connections(std::move(made)),
      move_operations_on(move_on_too),
      notice(std::move(told)),
      links{.shared_memory = options.shared_memory, .network = options.network},
      planner(std::move(hierarchy), rank, std::move(options), &job().plans),
      engine({connections.shm.get(), connections.ucx.get(), connections.mpi.get()}, {.yield = yield,
                                                                                     .host_progress = move_on,
                                                                                     .context = this,
                                                                                     .failure = &notice.heard(),
                                                                                     .agree_on_reason = agree}),
      trials(planner),
      schedules(planner, trials, rank, planner.hierarchy().ranks()),
      to_all(planner.hierarchy().ranks()),
      from_root(planner.hierarchy().ranks()) {
  links.hierarchy = &planner.hierarchy();
}

namespace {

Status first_reason(Machinery& machinery, const Status& failure) {
  constexpr std::uint64_t longest_ns = 500'000'000;
  if (failure.code() != Code::peer_left) return failure;
  const std::uint64_t wait_ns = std::exchange(machinery.awaited_reason, true) ? 0 : longest_ns;
  const std::uint64_t until = monotonic_ns() + wait_ns;
  Channel* const shm = machinery.connections.shm.get();
  while (true) {
    machinery.look_at_notice();
    if (const Status& heard = machinery.notice.heard(); heard.code() == Code::peer_failed) return heard;
    if (Status marked = shm != nullptr ? shm->peer_failure() : Status(); marked.code() == Code::peer_failed)
      return marked;
    if (monotonic_ns() >= until) return failure;
    sched_yield();
  }
}

}  // namespace

Status Machinery::reason_of(const Status& failure) noexcept {
  try {
    return first_reason(*this, failure);
  } catch (const std::exception& exception) {  // which must not keep the failure from whoever waits for it
    return status_of(exception);
  }
}

Status Machinery::agree_on_reason(const Status& failure) noexcept {
  Status reason = reason_of(failure);
  tell(connections.messages.handle(), reason);
  return reason;
}

// Said here too: the host's own words of the error that ends the job go another way, on which its launcher loses them
// once some rank has ended the job (Open MPI 4.1: docs/soak.md).
void Machinery::tell(MPI_Comm messages, const Status& cause) noexcept {
  if (cause.code() != Code::peer_left && !known_to_others() && !notice.told()) try {
      warn("a collective call has failed: " + cause.message());
    } catch (const std::exception&) {  // the others are told all the same
    }
  notice.tell(messages, cause);
}

bool Machinery::known_to_others() noexcept {
  if (notice.heard().code() == Code::peer_failed) return true;
  Channel* const shm = connections.shm.get();
  try {
    return shm != nullptr && shm->peer_failure().code() == Code::peer_failed;
  } catch (const std::exception&) {  // no memory for its text: there is one
    return true;
  }
}

void Machinery::give_up(const Status& cause) noexcept { give_up(cause, connections.messages.handle()); }

void Machinery::give_up(const Status& cause, MPI_Comm messages) noexcept {
  tell(messages, cause);  // before its connections are found closed
  try {
    engine.give_up(cause);
  } catch (const std::exception&) {  // a channel that could not be told why
  }
}

Machinery::~Machinery() {
  if (trace != nullptr) keep_trace(std::move(trace));
}

}  // namespace plait::plugin
