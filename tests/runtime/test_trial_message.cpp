#include "runtime/team/trial_message.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/runtime/in_process_oob.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// Nothing ever arrives.
class DeadChannel final : public Channel {
 public:
  ChannelKind kind() const override { return ChannelKind::ucx; }
  Result<bool> start(Transfer&) override {
    ++active_;
    return false;
  }
  Result<bool> progress(std::vector<Transfer*>&) override { return false; }
  int active() const override { return active_; }
  void abandon(const Status&) override { active_ = 0; }

 private:
  int active_ = 0;
};

constexpr std::uint64_t second_ns = 1'000'000'000;

TrialPartners in_a_ring(const Oob& oob) {
  return {.to = (oob.rank() + 1) % oob.ranks(), .from = (oob.rank() + oob.ranks() - 1) % oob.ranks()};
}

TEST(TrialMessage, DoesNotWaitForEver) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    DeadChannel channel;
    return trial_succeeds(channel, oob, in_a_ring(oob), second_ns / 20) || channel.active() > 0 ? "succeeded" : "";
  }),
            "");
}

// Also those whose own partners are well: these skip the trials that are left, and say so.
TEST(TrialMessage, OfARankThatLeavesEndsForAll) {
  constexpr int ranks = 16, trials = 4;
  constexpr std::uint64_t limit_ns = 20 * second_ns;
  InProcessJob job(ranks);
  const std::uint64_t begin = tl::monotonic_ns();
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    if (oob.rank() == 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in the midst of the first
      leave_trials(oob, in_a_ring(oob));
      return "";
    }
    for (int trial = 0; trial < trials; ++trial) {
      DeadChannel channel;
      if (trial_succeeds(channel, oob, in_a_ring(oob), limit_ns)) return "succeeded";
    }
    return "";
  }),
            "");
  EXPECT_LT(tl::monotonic_ns() - begin, limit_ns);
}

}  // namespace
}  // namespace plait::runtime
