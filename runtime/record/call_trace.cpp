#include "runtime/record/call_trace.h"

#include <mutex>
#include <new>
#include <utility>

#include "core/immortal.h"

namespace plait::runtime {
namespace {

constexpr std::size_t steps_a_communicator = 1u << 15;
constexpr std::size_t calls_a_communicator = 1u << 13;
constexpr std::size_t steps_a_process = 1u << 19;

struct Kept {
  std::mutex guard;
  std::vector<std::unique_ptr<CommunicatorTrace>> traces;
  std::size_t steps = 0;
  std::uint64_t dropped = 0;
};

Kept& kept() {
  static Immortal<Kept> all;  // never destroyed: communicators may end until the process does
  return *all;
}

}  // namespace

CommunicatorTrace::CommunicatorTrace() : steps(steps_a_communicator) { calls.reserve(calls_a_communicator); }

void CommunicatorTrace::add(const CallRecord& call) {
  if (calls.size() < calls_a_communicator)
    calls.push_back(call);
  else
    ++dropped_calls;
}

// What there is no memory for is dropped.
void keep_trace(std::unique_ptr<CommunicatorTrace> trace) noexcept {
  Kept& all = kept();
  const std::scoped_lock lock(all.guard);
  const std::size_t steps = trace->steps.records().size();
  if (all.steps + steps > steps_a_process) {
    all.dropped += steps + trace->calls.size();
    return;
  }
  const std::size_t calls = trace->calls.size();
  try {
    all.traces.push_back(std::move(trace));
    all.steps += steps + 1;  // the one bounds the number of communicators that had no step
  } catch (const std::bad_alloc&) {
    all.dropped += steps + calls;
  }
}

void for_each_trace(const std::function<void(const CommunicatorTrace& trace)>& take) {
  const std::scoped_lock lock(kept().guard);
  for (const auto& trace : kept().traces) take(*trace);
}

std::uint64_t dropped_records() {
  const std::scoped_lock lock(kept().guard);
  return kept().dropped;
}

}  // namespace plait::runtime
