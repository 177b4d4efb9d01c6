#include "perf/training/compute_kernel.h"

#include <algorithm>
#include <chrono>

namespace plait::training {
namespace {

constexpr std::size_t small_elements = 2048;                   // 8 KiB
constexpr std::size_t large_elements = std::size_t{16} << 20;  // 64 MiB
constexpr std::size_t streamed_at_once = 8192;                 // 32 KiB
constexpr int rounds = 8;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

ComputeKernel::ComputeKernel(const std::string& kind)
    : computes_(kind != "memory"), streams_(kind != "compute"), small_(small_elements, 1.0f) {
  if (streams_) large_.assign(large_elements, 1.0f);
  // The best of several tries: what else runs on the machine only makes them shorter.
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double begin = now();
    int units = 0;
    while (now() - begin < 0.02) {
      unit();
      ++units;
    }
    units_a_second_ = std::max(units_a_second_, units / (now() - begin));
  }
}

void ComputeKernel::unit() {
  if (computes_)
    for (int round = 0; round < rounds; ++round)
      for (float& value : small_) value = value * 0.999f + 0.001f;
  if (!streams_) return;
  for (std::size_t i = 0; i < streamed_at_once; ++i) large_[position_ + i] = large_[position_ + i] * 0.999f + 0.001f;
  position_ = (position_ + streamed_at_once) % large_elements;
}

void ComputeKernel::run(double seconds) {
  owed_ += seconds * units_a_second_;
  for (; owed_ >= 1; owed_ -= 1) unit();
}

float ComputeKernel::result() const { return small_.front() + (large_.empty() ? 0 : large_[position_]); }

}  // namespace plait::training
