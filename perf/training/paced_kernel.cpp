#include "perf/training/paced_kernel.h"

#include <algorithm>
#include <chrono>

namespace plait::training {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

// The best of several tries: what else runs on the machine only makes them shorter.
PacedKernel::PacedKernel(KernelKind kind) : kernel_(kind) {
  constexpr int tries = 10;
  constexpr double seconds = 0.02;
  for (int attempt = 0; attempt < tries; ++attempt) {
    const double begin = now();
    int pieces = 0;
    for (; now() - begin < seconds; ++pieces) kernel_.run(1);
    pieces_a_second_ = std::max(pieces_a_second_, pieces / (now() - begin));
  }
}

void PacedKernel::run(double seconds) {
  owed_ += seconds * pieces_a_second_;
  const auto pieces = static_cast<std::size_t>(owed_);
  kernel_.run(pieces);
  owed_ -= static_cast<double>(pieces);
}

}  // namespace plait::training
