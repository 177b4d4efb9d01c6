#include "plugin/progress_share.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace plait {
namespace {

constinit std::atomic<double> duty_at_hand{1};

}  // namespace

double helper_duty(const CommunicationShare& share) { return std::min(1.0, share.threads * share.duty); }

void DutyMeter::restart(std::uint64_t wall_ns, std::uint64_t processor_ns) {
  wall_ns_ = wall_ns;
  processor_ns_ = processor_ns;
  credit_ns_ = 0;
}

std::uint64_t DutyMeter::rest_ns(std::uint64_t wall_ns, std::uint64_t processor_ns, double duty) {
  credit_ns_ += duty * static_cast<double>(wall_ns - wall_ns_);
  credit_ns_ -= static_cast<double>(processor_ns - processor_ns_);
  credit_ns_ = std::min(credit_ns_, duty * static_cast<double>(period_ns));
  wall_ns_ = wall_ns;
  processor_ns_ = processor_ns;
  return credit_ns_ >= 0 ? 0 : static_cast<std::uint64_t>(-credit_ns_ / duty) + 1;
}

ProgressDuty& ProgressDuty::instance() {
  static auto* all = new ProgressDuty;  // never destroyed: calls may come until the process ends
  return *all;
}

double ProgressDuty::duty() const { return duty_at_hand.load(std::memory_order_relaxed); }

void ProgressDuty::update() {
  const auto largest = std::ranges::max_element(under_way_);
  duty_at_hand.store(largest != under_way_.end() ? *largest : default_, std::memory_order_relaxed);
}

double ProgressDuty::set_default(double duty) {
  const std::scoped_lock lock(guard_);
  const double before = std::exchange(default_, duty);
  update();
  return before;
}

void ProgressDuty::enter(double duty) {
  const std::scoped_lock lock(guard_);
  under_way_.push_back(duty);
  update();
}

void ProgressDuty::leave(double duty) {
  const std::scoped_lock lock(guard_);
  if (const auto found = std::ranges::find(under_way_, duty); found != under_way_.end()) under_way_.erase(found);
  update();
}

}  // namespace plait
