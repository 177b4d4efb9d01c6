#include "runtime/job/job.h"

namespace plait::runtime {

constinit Job* detail::job = nullptr;
constinit std::atomic<Phase> detail::phase{Phase::before};
constinit std::atomic<bool> detail::enabled{true};
constinit std::atomic<bool> detail::reporting{false};
constinit std::atomic<bool> detail::threaded{false};
thread_local constinit LastCall detail::last_call;
constinit std::atomic<unsigned long> detail::trial_calls{0};

}  // namespace plait::runtime
