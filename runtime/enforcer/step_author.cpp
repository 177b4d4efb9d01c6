#include "runtime/enforcer/step_author.h"

#include <chrono>
#include <exception>
#include <utility>

#include "core/attempt.h"
#include "plan/step/step_plan.h"
#include "runtime/enforcer/background.h"
#include "runtime/recorder/recorder.h"

namespace plait::runtime {
namespace {

constexpr int look_every_ms = 5;
constexpr std::uint64_t enough_steps = 4;
constexpr double searching_seconds = 1;
// Less is not worth the disturbance.
constexpr double least_gain = 0.01;

const char* const nothing_to_gain = "the schedule that was found would gain less than 1 %";

}  // namespace

StepAuthor::StepAuthor(Hierarchy hierarchy, Machine machine, plan::step::CallOrder order)
    : hierarchy_(std::move(hierarchy)), order_(order), machine_(std::move(machine)), thread_([this] { work(); }) {}

StepAuthor::~StepAuthor() {
  {
    const std::scoped_lock lock(guard_);
    stopped_ = true;
  }
  wanted_.notify_all();
  thread_.join();
}

bool StepAuthor::wait_for(int milliseconds) {
  std::unique_lock lock(guard_);
  return !wanted_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return stopped_; });
}

void StepAuthor::begin_again(double slowness) {
  {
    const std::scoped_lock lock(guard_);
    for (LinkLevel& level : machine_.levels) {
      if (!level.network) continue;
      level.port_seconds_per_byte *= slowness;
      level.latency *= slowness;
    }
    reason_.clear();
    state_.store(State::working, std::memory_order_release);
  }
  wanted_.notify_all();
}

void StepAuthor::work() {
  run_in_the_background();
  for (;;) {
    const Status written = attempt([&]() -> Status {
      write();
      return {};
    });
    if (!written.ok()) reason_ = written.message();
    state_.store(reason_.empty() ? State::written : State::without, std::memory_order_release);
    std::unique_lock lock(guard_);
    wanted_.wait(lock, [this] { return stopped_ || state() == State::working; });
    if (stopped_) return;
  }
}

void StepAuthor::write() {
  std::optional<plan::step::Step> step;
  while (!step.has_value()) {
    if (!wait_for(look_every_ms)) {
      reason_ = "the program ended before it repeated a step";
      return;
    }
    if (Recorder* from = recorder(); from != nullptr) step = from->step_so_far(enough_steps);
  }
  Result<plan::step::StepSchedule> schedule = plan::step::plan_step(*step, hierarchy_, machine_, {}, searching_seconds);
  if (!schedule.ok()) {
    reason_ = schedule.status().message();
    return;
  }
  schedule_ = plan::step::part_of(*schedule, 0, order_);
  if (schedule_.operations.empty())
    reason_ = "the program's step has no collectives that can be scheduled";
  else if (schedule_.seconds > (1 - least_gain) * schedule_.as_issued_seconds)
    reason_ = nothing_to_gain;
}

}  // namespace plait::runtime
