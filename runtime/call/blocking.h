// Blocking calls: when a communicator is set up for them, and how they run.
#pragma once

#include <cstdint>

#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/team/extent.h"

namespace plait::runtime {

// What became of a request: done, with what the call is to return; or why the host must take it, and what is to be
// ended by end_host_call() after that. Fits two registers, for the sake of short calls.
class Outcome {
 public:
  static Outcome done(int code) { return Outcome(nullptr, code, nullptr); }
  static Outcome host(const char* reason, TimedCall* sample = nullptr) { return Outcome(reason, 0, sample); }

  bool is_done() const { return reason_ == nullptr; }
  int code() const { return code_; }
  // nullptr when done
  const char* reason() const { return reason_; }
  // nullptr: none. Precondition: the host must take the call.
  TimedCall* sample() const { return sample_; }

 private:
  Outcome(const char* reason, int code, TimedCall* sample) : reason_(reason) {
    if (reason == nullptr)
      code_ = code;
    else
      sample_ = sample;
  }
  const char* reason_;
  union {
    int code_;
    TimedCall* sample_;
  };
};
static_assert(sizeof(Outcome) <= 2 * sizeof(void*));

// Runs an eligible request, or says why not. The first eligible calls of a communicator are the host's; then it is set
// up, collectively. Throws nothing. `begin_ns`: of the call, 0 when nobody measures.
Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns);

// Exchanges by pairs that accelerate() takes with whatever arguments are right: whether one is the host's follows from
// earlier calls alone. (An alltoallv or alltoallw in place is the host's by its arguments, and counts for nothing.)
constexpr bool may_stay_unread(Collective collective) {
  return collective == Collective::gatherv || collective == Collective::scatterv;
}
// Why such a call is the host's, so that nobody need read its arguments; it counts as one then. nullptr: accelerate()
// says what becomes of it.
const char* leave_unread(Communicator& communicator, Collective collective) noexcept;

// After the host has taken a call that is a sample: accelerate() has said so.
void end_host_call(Communicator& communicator, TimedCall& sample);

// Sets up a communicator that waits for it, or that is set up for less; collective over it. Afterwards it is
// accelerated, or the host's for ever, or broken where a rank had failed before.
void set_up_now(Communicator& communicator, TeamExtent extent);

// Where the others leave the call to the host, this rank does so as well: true until a communicator is set up. The call
// counts as an eligible one, as it does with the others unless its arguments are none of Plait's. Where they set up at
// this call, they hear that this rank cannot.
bool stay_with_host(Communicator& communicator) noexcept;

}  // namespace plait::runtime
