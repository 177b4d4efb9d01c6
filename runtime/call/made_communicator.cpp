#include "runtime/call/made_communicator.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/log.h"
#include "plan/step/schedule_file.h"
#include "runtime/call/blocking.h"
#include "runtime/enforcer/enforcer.h"
#include "runtime/enforcer/schedule_counts.h"
#include "runtime/execution/decide.h"
#include "runtime/job/job.h"

namespace plait::runtime {
namespace {

using plan::step::CallOrder;

// Whether any communicator of this process may have a reason to be set up when another is made of it.
constinit std::atomic<bool> any_waiting_post{false};

// A program that makes many communicators of one on which it only posts may need few of them: so many are set up before
// it posts there again, and one of those that it has not posted on yet.
constexpr int most_made = 8;

bool at_once() { return job().config.setup_calls == 0; }

void set_up_if_waiting(Communicator& communicator) {
  if (waits_for_set_up(communicator)) set_up_now(communicator, TeamExtent::all_calls);
}

Status keep_to_own_schedule(Communicator& communicator, CallOrder order) {
  return enforce_own(communicator, own_author(communicator, order), usual_prepare(communicator));
}

// Where it has calls of the other order only, nothing is to be done.
Status keep_to_given_schedule(Communicator& communicator, CallOrder order) {
  const plan::step::StepSchedule& schedule = *job().schedule;
  const CallOrder other = order == CallOrder::posted ? CallOrder::started : CallOrder::posted;
  const bool only_others = !plan::step::has_part(schedule, 0, order) && plan::step::has_part(schedule, 0, other);
  return only_others ? Status() : enforce(communicator, schedule, order);
}

void keep_to_schedule(Communicator& communicator, CallOrder order) {
  const Job& job = runtime::job();
  const Status kept =
      job.makes_schedule ? keep_to_own_schedule(communicator, order) : keep_to_given_schedule(communicator, order);
  if (kept.ok()) return;
  ScheduleCounts::instance().refuse(kept.message());
  if (job.first_rank) warn("PLAIT_SCHEDULE is not used: " + kept.message());
}

// The same on all ranks: they make the same calls on a communicator in the same order, and this is one of them.
bool only_posts(const Communicator& communicator) {
  if (communicator.only_posts) return communicator.made_of_it < most_made;
  return waits_for_set_up(communicator) && communicator.posted_calls == communicator.eligible_calls &&
         communicator.posted_calls >= std::max(1, job().config.setup_calls);
}

// What was posted on `from` alone decides, so that it does not matter which other ones its ranks are in.
void set_up_both(const FindCommunicator& from, const FindCommunicator& made) {
  const bool posted = any_waiting_post.load(std::memory_order_relaxed);
  if (!accepting() || (!posted && !at_once())) return;
  Communicator* parent = posted ? from() : nullptr;
  const bool inherits = parent != nullptr && only_posts(*parent);
  if (inherits) {
    parent->only_posts = true;
    ++parent->made_of_it;
    set_up_if_waiting(*parent);
  }
  if (!inherits && !at_once()) return;
  Communicator* child = made();
  if (child == nullptr) return;
  child->only_posts = inherits;
  child->made_of_it = most_made - 1;
  set_up_if_waiting(*child);
}

}  // namespace

void note_waiting_post(Communicator& communicator) {
  ++communicator.eligible_calls;
  ++communicator.posted_calls;
  any_waiting_post.store(true, std::memory_order_relaxed);
}

void set_up_made(const FindCommunicator& from, const FindCommunicator& made) noexcept {
  try {
    set_up_both(from, made);
  } catch (const std::exception&) {
  }
}

void set_up_world(const FindCommunicator& world) noexcept {
  if (!accepting() || !(at_once() || job().schedules())) return;
  try {
    Communicator* communicator = world();
    if (communicator == nullptr) return;
    set_up_if_waiting(*communicator);
    if (job().schedules()) keep_to_schedule(*communicator, CallOrder::posted);
  } catch (const std::exception&) {  // its first call will say so
  }
}

void keep_starts_to_schedule(Communicator& space) noexcept {
  if (!job().schedules()) return;
  try {
    keep_to_schedule(space, CallOrder::started);
  } catch (const std::exception&) {  // without one
  }
}

}  // namespace plait::runtime
