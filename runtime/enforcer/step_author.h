// PLAIT_SCHEDULE=auto, on the communicator's first rank: a thread of low priority that waits until the recorder knows
// the step that the program repeats, and plans it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "plan/model/machine.h"
#include "plan/step/schedule_file.h"
#include "runtime/enforcer/schedule_control.h"
#include "runtime/layer.h"
#include "topo/hierarchy.h"

namespace plait::runtime {

class StepAuthor final : public ScheduleSource {
 public:
  // Writes that part of the program's schedule which has this order.
  StepAuthor(Hierarchy hierarchy, Machine machine, plan::step::CallOrder order);
  ~StepAuthor() override;  // waits for the thread, for as long as a search at most
  StepAuthor(const StepAuthor&) = delete;
  StepAuthor& operator=(const StepAuthor&) = delete;

  State state() const override { return state_.load(std::memory_order_acquire); }
  const plan::step::StepSchedule& schedule() const override { return schedule_; }
  const std::string& reason() const override { return reason_; }
  void begin_again(double slowness) override;

 private:
  void work();
  bool wait_for(int milliseconds);
  void write();

  const Hierarchy hierarchy_;
  const plan::step::CallOrder order_;
  Machine machine_;
  std::atomic<State> state_{State::working};
  plan::step::StepSchedule schedule_;  // this and the next: of the thread while it works
  std::string reason_;
  std::mutex guard_;  // of the next two
  std::condition_variable wanted_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of these
};

}  // namespace plait::runtime
