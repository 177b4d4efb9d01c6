#include "runtime/progress/progress_share.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/immortal.h"

namespace plait::runtime {

CommunicationShare share_among(const CommunicationShare& share, int threads) {
  if (share.threads <= threads) return share;
  return {.threads = threads, .duty = std::min(1.0, share.threads * share.duty / threads)};
}

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

ProgressShare& ProgressShare::instance() {
  static Immortal<ProgressShare> all;  // never destroyed: calls may come until the process ends
  return *all;
}

void ProgressShare::update() {
  const auto size = [](const CommunicationShare& share) {
    return std::tuple(share.threads * share.duty, share.threads);
  };
  const auto largest = std::ranges::max_element(under_way_, {}, size);
  const CommunicationShare at_hand = share_among(largest != under_way_.end() ? *largest : default_, threads_);
  duty_.store(at_hand.duty, std::memory_order_relaxed);
  if (team_ != nullptr) team_->set_threads(at_hand.threads);
}

void ProgressShare::set_threads(int threads, WorkTeam* team) {
  const std::scoped_lock lock(guard_);
  threads_ = threads;
  team_ = team;
  update();
}

void ProgressShare::dismiss_team() {
  const std::scoped_lock lock(guard_);
  team_ = nullptr;
}

CommunicationShare ProgressShare::in_use(const CommunicationShare& share) const {
  const std::scoped_lock lock(guard_);
  return share_among(share, threads_);
}

double ProgressShare::set_default_duty(double duty) {
  const std::scoped_lock lock(guard_);
  const double before = std::exchange(default_.duty, duty);
  update();
  return before;
}

int ProgressShare::set_default_threads(int threads) {
  const std::scoped_lock lock(guard_);
  const int before = std::exchange(default_.threads, threads);
  update();
  return before;
}

void ProgressShare::enter(const CommunicationShare& share) {
  const std::scoped_lock lock(guard_);
  under_way_.push_back(share);
  update();
}

void ProgressShare::leave(const CommunicationShare& share) {
  const std::scoped_lock lock(guard_);
  if (const auto found = std::ranges::find(under_way_, share); found != under_way_.end()) under_way_.erase(found);
  update();
}

}  // namespace plait::runtime
