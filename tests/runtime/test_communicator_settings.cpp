// What a program sets for one communicator, by ranks in one process: all take it, or all refuse it and one says why.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "runtime/call/chosen_channels.h"
#include "runtime/call/forced_plan.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

struct AnswersOfRanks {
  std::string wrong;  // what the first rank finds that is not satisfied
  std::string said;
};

class CommunicatorSettings : public testing::Test {
 protected:
  static constexpr Shape shape{4, 2};
  using Set = std::function<Answer(Communicator& communicator, Oob& all)>;
  using Look = std::function<std::string(const Communicator& communicator, const Answer& answer)>;

  AnswersOfRanks set(const Set& set, const Look& look) {
    testing::internal::CaptureStderr();
    const std::string wrong = job.run([&](Oob& all) {
      PostingRank rank(job, all.rank(), shape, test_seed());
      const Answer answer = set(rank.communicator, all);
      return look(rank.communicator, answer);
    });
    return {wrong, testing::internal::GetCapturedStderr()};
  }
  void bring_messages() { job.bring_messages(test_seed(), 3); }

  Process process{shape.ranks};
  InProcessJob job{shape.ranks};
};

std::string is(const Answer& answer, Answer::What what) {
  return answer.what == what ? "" : "the answer is " + std::to_string(static_cast<int>(answer.what));
}
std::string is_refused(const Communicator&, const Answer& answer) { return is(answer, Answer::What::refused); }

bool says_once(const std::string& said, const std::string& what) {
  const std::size_t at = said.find(what);
  return at != std::string::npos && said.find("warning", said.find("warning") + 1) == std::string::npos;
}

// ---- Plans ----

constexpr const char* a_plan = "AR.12";

TEST_F(CommunicatorSettings, AllTakeThePlanThatAllName) {
  bring_messages();
  const AnswersOfRanks outcome = set(
      [](Communicator& one, Oob&) { return force_plan(one, a_plan); },
      [](const Communicator& one, const Answer& answer) -> std::string {
        if (one.road != Road::accelerated) return "it is not set up";
        const Choice choice = one.team->planner.choose(
            {.collective = Collective::allreduce, .root = 0, .count = 1000, .element_bytes = 8, .commutative = true});
        if (choice.plan == nullptr) return "no plan";
        if (!choice.plan->name.starts_with(a_plan)) return "another plan: " + choice.plan->name;
        return is(answer, Answer::What::done);
      });
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_EQ(outcome.said, "");
}

TEST_F(CommunicatorSettings, PlansThatDifferAreRefused) {
  bring_messages();
  const AnswersOfRanks outcome =
      set([](Communicator& one, Oob&) { return force_plan(one, one.rank == 2 ? "" : a_plan); }, is_refused);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_TRUE(says_once(outcome.said, "plait_set_plan: the ranks name different plans")) << outcome.said;
}

TEST_F(CommunicatorSettings, OneRanksWrongPlanIsRefusedByAll) {
  bring_messages();
  const AnswersOfRanks outcome = set(
      [](Communicator& one, Oob&) { return force_plan(one, one.rank == 3 ? "no plan's name" : a_plan); }, is_refused);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_TRUE(says_once(outcome.said, "plait_set_plan: ")) << outcome.said;
  EXPECT_EQ(outcome.said.find("different"), std::string::npos) << outcome.said;
}

// Without messages there is no channel.
TEST_F(CommunicatorSettings, WhereTheCommunicatorIsTheHostsOnlyNoPlanIsTaken) {
  const auto take = [](const char* plan) {
    return [plan](Communicator& one, Oob&) {
      one.road = Road::host;
      one.host_reason = "for a reason";
      return force_plan(one, plan);
    };
  };
  EXPECT_EQ(
      set(take(""), [](const Communicator&, const Answer& answer) { return is(answer, Answer::What::done); }).wrong,
      "");
  const AnswersOfRanks outcome = set(take(a_plan), is_refused);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_TRUE(says_once(outcome.said, "the host MPI has this communicator's collectives: for a reason"))
      << outcome.said;
}

TEST_F(CommunicatorSettings, ABrokenCommunicatorsErrorComesBack) {
  const AnswersOfRanks outcome = set(
      [](Communicator& one, Oob&) {
        one.road = Road::broken;
        one.error = 41;
        return force_plan(one, a_plan);
      },
      [](const Communicator&, const Answer& answer) -> std::string {
        return answer.error == 41 ? is(answer, Answer::What::failed) : "another error";
      });
  EXPECT_EQ(outcome.wrong, "");
}

// ---- Channels ----

TEST_F(CommunicatorSettings, AllTakeTheChannelsThatAllName) {
  const AnswersOfRanks outcome = set([](Communicator& one, Oob& all) { return choose_channels(one, all, "shm,mpi"); },
                                     [](const Communicator& one, const Answer& answer) -> std::string {
                                       if (one.channels != std::vector<std::string>{"shm", "mpi"})
                                         return "other channels";
                                       return is(answer, Answer::What::done);
                                     });
  EXPECT_EQ(outcome.wrong, "");
}

TEST_F(CommunicatorSettings, ChannelsThatDifferAreRefused) {
  const AnswersOfRanks outcome =
      set([](Communicator& one, Oob& all) { return choose_channels(one, all, one.rank == 1 ? "shm" : "mpi"); },
          [](const Communicator& one, const Answer& answer) -> std::string {
            return one.channels.empty() ? is(answer, Answer::What::refused) : "it has taken them";
          });
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_TRUE(says_once(outcome.said, "plait_set_channels: the ranks name different channels")) << outcome.said;
}

TEST_F(CommunicatorSettings, OneRanksWrongChannelsAreRefusedByAll) {
  const AnswersOfRanks outcome =
      set([](Communicator& one, Oob& all) { return choose_channels(one, all, one.rank == 1 ? "pigeons" : "mpi"); },
          is_refused);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_TRUE(says_once(outcome.said, "\"pigeons\": expected a list of")) << outcome.said;
}

TEST_F(CommunicatorSettings, ChannelsOfWhatIsConnectedAreRefused) {
  const AnswersOfRanks outcome = set(
      [](Communicator& one, Oob& all) {
        one.road = Road::accelerated;
        return choose_channels(one, all, "mpi");
      },
      is_refused);
  EXPECT_EQ(outcome.wrong, "");
  EXPECT_TRUE(says_once(outcome.said, "the communicator is connected already")) << outcome.said;
}

TEST_F(CommunicatorSettings, WhereARankWithdrawsTheOthersFail) {
  const AnswersOfRanks outcome = set(
      [](Communicator& one, Oob& all) -> Answer {
        if (one.rank != 2) return choose_channels(one, all, "mpi");
        all.withdraw();
        return Answer::failure(1);
      },
      [](const Communicator&, const Answer& answer) { return is(answer, Answer::What::failed); });
  EXPECT_EQ(outcome.wrong, "");
}

}  // namespace
}  // namespace plait::runtime
