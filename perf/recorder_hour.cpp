// What PLAIT_RECORD keeps of an hour of 10,000 calls a second, and what folding them costs: a program that repeats a
// step of 6 calls, of which 2 are waited for. Needs no MPI: the recorder is told what a binding would tell it.
//
//   recorder_hour [CALLS]    36000000
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/recorder/recorder.h"
#include "tl/trace.h"

namespace {

using namespace plait;
using runtime::CallKind;

constexpr std::uint64_t calls_of_step = 6, us = 1000;

void play_step(runtime::Recorder& recorder, std::uint64_t begin_ns) {
  std::uint64_t now = begin_ns;
  const auto span = [&] {
    const runtime::Span time{now, now + us};
    now += 100 * us;
    return time;
  };
  for (const std::uint64_t request : {1, 2})
    recorder.add_posted({.collective = plan::Collective::alltoall, .form = plan::Form::nonblocking}, 4096 * request,
                        span(), request);
  for (const std::uint64_t bytes : {8, 64, 512})
    recorder.add_call({.collective = plan::Collective::allreduce, .type = "MPI_DOUBLE", .op = "sum"}, bytes, span());
  for (const std::uint64_t request : {1, 2}) recorder.add_wait(request, span());
  recorder.add_call({.collective = plan::Collective::barrier}, 0, span());
}

}  // namespace

int main(int argc, char** argv) {
  const auto calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 36'000'000ull;
  const std::uint64_t steps = std::max<std::uint64_t>(calls / calls_of_step, 1);
  runtime::Recorder recorder(0);
  std::size_t most = 0;
  const std::uint64_t begin = tl::monotonic_ns();
  for (std::uint64_t step = 0; step < steps; ++step) {
    play_step(recorder, 1 + step * 800 * us);
    if (step % 1024 == 0 || step < 1024) most = std::max(most, recorder.bytes());
  }
  const double ns = static_cast<double>(tl::monotonic_ns() - begin) / static_cast<double>(steps * calls_of_step);
  const std::string file = recorder.finish("recorder_hour");
  std::printf("%llu calls: %.0f ns a call, its wait included; at most %zu bytes of memory; a file of %zu bytes\n",
              static_cast<unsigned long long>(steps * calls_of_step), ns, most, file.size());
}
