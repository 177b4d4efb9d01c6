#include "perf/training/paced_kernel.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace plait::perf::training {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

// The median of many tries.
PacedKernel::PacedKernel(KernelKind kind, double pieces_a_second) : kernel_(kind), pieces_a_second_(pieces_a_second) {
  constexpr int tries = 51;
  constexpr double seconds = 0.02;
  if (pieces_a_second_ > 0) return;
  std::vector<double> paces;
  for (int attempt = 0; attempt < tries; ++attempt) {
    const double begin = now();
    int pieces = 0;
    for (; now() - begin < seconds; ++pieces) kernel_.run(1);
    paces.push_back(pieces / (now() - begin));
  }
  std::ranges::sort(paces);
  pieces_a_second_ = paces[paces.size() / 2];
}

void PacedKernel::run(double seconds) {
  owed_ += seconds * pieces_a_second_;
  const auto pieces = static_cast<std::size_t>(owed_);
  kernel_.run(pieces);
  owed_ -= static_cast<double>(pieces);
}

}  // namespace plait::perf::training
