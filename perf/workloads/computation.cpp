#include "perf/workloads/computation.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace plait::perf::workloads {

Computation::Computation(ComputationKind kind, std::function<void()> test) : kind_(kind), test_(std::move(test)) {
  if (kind_.on_processor) kernel_.emplace(tuner::KernelKind::compute, 0);
}

void Computation::run(double seconds) {
  if (kind_.on_processor) {
    work(seconds);
  } else {
    wait(seconds);
  }
}

void Computation::wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto ticks = [](double s) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const Clock::time_point end = Clock::now() + ticks(seconds);
  while (kind_.test_every > 0 && Clock::now() + ticks(kind_.test_every) < end) {
    test_();
    std::this_thread::sleep_until(std::min(end, Clock::now() + ticks(kind_.test_every)));
  }
  std::this_thread::sleep_until(end);
}

void Computation::work(double seconds) {
  double left = seconds;
  for (; kind_.test_every > 0 && left > kind_.test_every; left -= kind_.test_every) {
    kernel_->run(kind_.test_every);
    test_();
  }
  kernel_->run(left);
}

}  // namespace plait::perf::workloads
