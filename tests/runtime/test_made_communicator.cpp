// When a communicator is set up because another is made of it: which calls were made on it decides (decision 011).
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <utility>

#include "runtime/call/made_communicator.h"
#include "runtime/job/job.h"
#include "runtime/progress/progress.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

// Counts its set-ups, which all work to the same end: what follows is the host's.
struct CountedCommunicator final : Communicator {
  using Communicator::Communicator;
  Result<std::unique_ptr<Team>> connect(TeamExtent, std::unique_ptr<Team>) noexcept override {
    ++set_ups;
    return Status(Code::unavailable, "nothing");
  }
  void decline_set_up() noexcept override {}
  int raise(int code) override { return code; }

  void post(int calls) {
    made_of_it = 0;
    for (int i = 0; i < calls && road == Road::waiting; ++i) note_waiting_post(*this);
  }

  int set_ups = 0;
};

class MadeCommunicators : public testing::Test {
 protected:
  MadeCommunicators() { detail::phase.store(Phase::open); }
  ~MadeCommunicators() override { detail::phase.store(Phase::before); }

  // What is made of it; whether that was set up at once.
  bool make(CountedCommunicator& from) { return make(from, made_); }
  static bool make(CountedCommunicator& from, std::unique_ptr<CountedCommunicator>& made) {
    made = std::make_unique<CountedCommunicator>(from.progress);
    set_up_made([&] { return &from; }, [&] { return made.get(); });
    return made->set_ups == 1;
  }

  Process process_{1};
  Progress progress_{{}};
  CountedCommunicator parent_{progress_};
  std::unique_ptr<CountedCommunicator> made_;
};

TEST_F(MadeCommunicators, WaitWhereTooLittleWasPosted) {
  EXPECT_FALSE(make(parent_));
  parent_.post(2);
  EXPECT_FALSE(make(parent_));
  EXPECT_EQ(parent_.set_ups, 0);
}

TEST_F(MadeCommunicators, AreSetUpWhereOnlyPostsWereMade) {
  parent_.post(3);
  EXPECT_TRUE(make(parent_));
  EXPECT_EQ(parent_.set_ups, 1);
  EXPECT_TRUE(make(parent_));
  EXPECT_EQ(parent_.set_ups, 1) << "it is set up already";
}

TEST_F(MadeCommunicators, WaitWhereOneCallBlocked) {
  parent_.post(3);
  ++parent_.eligible_calls;
  EXPECT_FALSE(make(parent_));
  EXPECT_EQ(parent_.set_ups, 0);
}

TEST_F(MadeCommunicators, AreEightInARowAndMoreAfterAnotherPost) {
  parent_.post(3);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(make(parent_)) << i;
  EXPECT_FALSE(make(parent_));
  parent_.post(1);
  EXPECT_TRUE(make(parent_));
}

TEST_F(MadeCommunicators, AreOneOfThoseThatNothingWasPostedOn) {
  parent_.post(3);
  ASSERT_TRUE(make(parent_));
  CountedCommunicator& child = *made_;
  std::unique_ptr<CountedCommunicator> grandchild;
  EXPECT_TRUE(make(child, grandchild));
  EXPECT_FALSE(make(child, grandchild));
  child.post(1);
  EXPECT_TRUE(make(child, grandchild));
}

TEST_F(MadeCommunicators, AreAllSetUpWhereThatIsAskedFor) {
  process_.config().setup_calls = 0;
  set_up_world([&] { return &parent_; });
  EXPECT_EQ(parent_.set_ups, 1);
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(make(parent_)) << i;
}

TEST_F(MadeCommunicators, TheFirstOneWaitsUnlessThatIsAskedFor) {
  set_up_world([&] { return &parent_; });
  EXPECT_EQ(parent_.set_ups, 0);
}

TEST_F(MadeCommunicators, OldOnesAreSetUpOfWhichARankGetsNone) {
  parent_.post(3);
  set_up_made([&] { return &parent_; }, [] { return nullptr; });
  EXPECT_EQ(parent_.set_ups, 1);
}

TEST_F(MadeCommunicators, WithoutMemoryForThemTheirFirstCallSaysSo) {
  parent_.post(3);
  set_up_made([&] { return &parent_; }, []() -> Communicator* { throw std::bad_alloc(); });
  process_.config().setup_calls = 0;
  set_up_world([]() -> Communicator* { throw std::bad_alloc(); });
  EXPECT_EQ(parent_.set_ups, 1);
}

TEST_F(MadeCommunicators, WaitWhereNoCallsAreTaken) {
  parent_.post(3);
  detail::phase.store(Phase::off);
  EXPECT_FALSE(make(parent_));
}

}  // namespace
}  // namespace plait::runtime
