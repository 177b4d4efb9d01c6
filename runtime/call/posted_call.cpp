#include "runtime/call/posted_call.h"

#include <atomic>

#include "runtime/execution/call_choice.h"
#include "runtime/progress/operation.h"
#include "runtime/progress/progress.h"
#include "runtime/team/team.h"

namespace plait::runtime {
namespace {

class WaitedOperation final : public Operation {
 public:
  void tell() noexcept override { told.store(true, std::memory_order_release); }
  std::atomic<bool> told{false};  // nobody looks at it any more
};

bool is_packed(const Request& request) { return request.input.staged() || request.output.staged(); }

}  // namespace

int post_and_wait(Communicator& communicator, const Request& request, std::uint64_t begin_ns) {
  WaitedOperation operation;
  operation.communicator = &communicator;
  operation.request = request;
  operation.form = Form::blocking;
  operation.begin_ns = begin_ns;
  operation.prepared = communicator.team->schedules.hold({.call = request.call,
                                                          .in_place = request.sharing != Sharing::none,
                                                          .displacements = request.displacements,
                                                          .candidate = planners_candidate});
  operation.needs_host = is_packed(request) || request.user != nullptr ||
                         operation.prepared->schedule.channels_used.any(&ChannelTraits::needs_host);
  communicator.grouping->enlist(operation);
  communicator.progress.hand_over(operation);
  communicator.progress.wait_until(operation.told);
  return operation.error == 0 ? 0 : communicator.raise(operation.error);
}

}  // namespace plait::runtime
