// Fused operators among ranks that are threads, with the tests' own driver and data on its device. All numbers are
// small integers, so that all sums are exact.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/fused/fake_device.h"
#include "tests/fused/plan_ranks.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {

inline float number(std::int64_t of, std::int64_t at) { return static_cast<float>((of * 5 + at * 3) % 13 - 6); }
inline std::vector<float> numbers(std::int64_t of, std::int64_t count) {
  std::vector<float> made;
  for (std::int64_t at = 0; at < count; ++at) made.push_back(number(of, at));
  return made;
}
// Of what rank `of` gives in a round.
inline std::int64_t seed(std::int64_t of, int round) { return 100 + of * 10 + round; }

// PLAIT_DEVICE_DIRECT
inline constexpr std::size_t direct_always = 1, direct_never = std::numeric_limits<std::size_t>::max();

class DeviceRanks : public testing::Test {
 protected:
  static constexpr int device_rounds = 3;
  struct Here {
    Oob& all;
    const MakeMembers& members;
    int rank;
  };
  static void SetUpTestSuite() {
    static_cast<void>(SharedHeap::create({.bytes = std::size_t{1} << 28}));
    FakeDevice::instance();
  }

  // Where one rank has no input all refuse, with nothing written; the next run goes well.
  template <class Operator>
  static std::string refuse_missing_input(const Here& here, Operator& made, const DeviceCopy& x,
                                          const DeviceCopy& output) {
    output.fill(0xa5);
    Status status = made.start(here.rank == 1 ? nullptr : x.address<float>());
    if (status.ok()) status = made.wait();
    if (status.message() != "x: NULL (on rank 1)") return "refused: " + status.message();
    if (!output.is_filled(0xa5)) return "an output was touched";
    status = made.start(x.address<float>());
    return status.ok() ? made.wait().message() : status.message();
  }

  static std::string on_ranks(int ranks, std::size_t direct_from, const std::function<std::string(const Here&)>& work,
                              bool with_cuda = true) {
    Process process(ranks);
    process.config().channels = {"shm", "mpi"};
    if (with_cuda) process.config().channels.emplace_back("cuda");
    process.config().device_direct_from = direct_from;
    InProcessJob job(ranks), party(ranks);
    party.bring_messages(test_seed(), 3);
    return job.run([&](Oob& all) -> std::string {
      FakeDevice::instance().use();
      PostingRank posting(job, all.rank(), {ranks, ranks}, test_seed());
      const MakeMembers members = [&] {
        return std::make_unique<AllMembers>(party, posting.progress, all.rank(), Shape{ranks, ranks});
      };
      return work({all, members, all.rank()});
    });
  }

  // The others wait for a rank that leaves: all rounds in any case. `expected(round)`.
  template <class Plan>
  static std::string run(Plan& plan, const DeviceCopy& output, const std::function<Status(int)>& start,
                         const std::function<std::vector<float>(int)>& expected) {
    std::string first;
    for (int round = 0; round < device_rounds; ++round) {
      output.fill(0xa5);
      Status status = start(round);
      if (status.ok()) status = plan.wait();
      const bool right = status.ok() && output.read<float>() == expected(round);
      if (!right && first.empty()) first = "round " + std::to_string(round) + ": wrong " + status.message();
    }
    return first;
  }
};

}  // namespace plait::fused
