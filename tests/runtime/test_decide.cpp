// What becomes of a call, by what it is and what its ranks have agreed on: without ranks; and that ranks which know
// different things all the same come to the same.
#include "runtime/execution/decide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plan/choose/planner.h"
#include "runtime/call/blocking.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/prepare_operation.h"
#include "tests/runtime/posting.h"

namespace plait::runtime {
namespace {

using What = Decision::What;

constexpr Form forms[] = {Form::blocking, Form::nonblocking, Form::persistent};

// What a look-up finds.
struct Found {
  PreparedCall prepared;
  int asked = 0;
  const PreparedCall& operator()() {
    ++asked;
    return prepared;
  }
};

// A communicator that is set up.
struct Situation {
  explicit Situation(HostSizes::Ranks ranks, bool host_when_faster = true)
      : sizes({}, ranks, host_when_faster), agreed{.ranks = ranks.ranks, .road = Road::accelerated, .sizes = &sizes} {
    found.prepared.accelerated = true;
    found.prepared.reason = "the look-up's";
  }
  Decision operator()(Form form, const Call& call, const char* unfit = nullptr) {
    return decide({.form = form, .call = call, .unfit = unfit}, agreed, found);
  }

  HostSizes sizes;
  Agreed agreed;
  Found found;
};

Call call_of(Collective collective, std::size_t bytes = 64) {
  return {.collective = collective, .root = 0, .count = bytes, .element_bytes = 1};
}

template <class Take>
void for_each_call(Take&& take) {
  for (int i = 0; i < collective_count; ++i)
    for (const Form form : forms) {
      const auto collective = static_cast<Collective>(i);
      const testing::ScopedTrace trace(
          __FILE__, __LINE__, std::string(name(collective)) + ", form " + std::to_string(static_cast<int>(form)));
      take(form, collective);
    }
}

TEST(Decide, LeavesWhatIsUnfitToTheHostOnEveryRoad) {
  for (const Road road : {Road::waiting, Road::accelerated, Road::host, Road::broken})
    for_each_call([&](Form form, Collective collective) {
      Situation situation({.ranks = 4, .between_nodes = false});
      situation.agreed.road = road;
      const Decision decision = situation(form, call_of(collective), reasons::no_data);
      EXPECT_EQ(decision.what, What::host);
      EXPECT_STREQ(decision.reason, reasons::no_data);
      EXPECT_FALSE(decision.eligible);
      EXPECT_EQ(situation.found.asked, 0);
    });
}

TEST(Decide, GoesByTheRoad) {
  for_each_call([&](Form form, Collective collective) {
    Situation situation({.ranks = 4, .between_nodes = false});
    situation.agreed.sizes = nullptr;
    situation.agreed.host_reason = "the road's";
    situation.agreed.road = Road::host;
    EXPECT_STREQ(situation(form, call_of(collective)).reason, "the road's");
    if (form == Form::persistent) return;  // its start fails
    situation.agreed.road = Road::broken;
    EXPECT_EQ(situation(form, call_of(collective)).what, What::fail);
  });
}

TEST(Decide, SetsUpForTheBlockingCallThatMakesItWorthWhile) {
  for_each_call([&](Form form, Collective collective) {
    Situation situation({.ranks = 4, .between_nodes = false});
    situation.agreed.sizes = nullptr;
    situation.agreed.road = Road::waiting;
    situation.agreed.setup_calls = 3;
    for (situation.agreed.eligible_calls = 0; situation.agreed.eligible_calls < 3; ++situation.agreed.eligible_calls) {
      const Decision decision = situation(form, call_of(collective));
      EXPECT_TRUE(decision.eligible);
      const bool last = form == Form::blocking && situation.agreed.eligible_calls == 2;
      EXPECT_EQ(decision.what, last ? What::set_up : What::host);
      if (last) {
        const TeamExtent extent = lies_in_pieces(collective) ? TeamExtent::all_calls : TeamExtent::short_calls;
        EXPECT_EQ(decision.extent, extent);
      } else {
        EXPECT_STREQ(decision.reason, form == Form::blocking ? reasons::not_set_up : reasons::not_set_up_by_blocking);
      }
    }
    EXPECT_EQ(situation.found.asked, 0);
  });
}

TEST(Decide, SetsUpForAllCallsWhereOneIsLongOrTheProgramPosts) {
  Situation situation({.ranks = 4, .between_nodes = false});
  situation.agreed.road = Road::waiting;
  const auto extent = [&](std::size_t bytes) {
    return situation(Form::blocking, call_of(Collective::allreduce, bytes)).extent;
  };
  EXPECT_EQ(extent(2048), TeamExtent::short_calls);
  EXPECT_EQ(extent(2049), TeamExtent::all_calls);
  situation.agreed.posts = true;
  EXPECT_EQ(extent(8), TeamExtent::all_calls);
}

TEST(Decide, DoesNotCountVectorsWhoseScanIsNeverTaken) {
  for (const Road road : {Road::waiting, Road::accelerated, Road::host, Road::broken})
    for (const Form form : forms)
      for (const bool host_when_faster : {false, true}) {
        Situation situation({.ranks = 4, .between_nodes = false}, host_when_faster);
        situation.agreed.road = road;
        const Decision decision = situation(form, call_of(Collective::exscan, 16 * 1024 + 1));
        EXPECT_EQ(decision.what, What::host);
        EXPECT_STREQ(decision.reason, plan::reasons::long_prefix);
        EXPECT_FALSE(decision.eligible);
      }
}

TEST(Decide, GoesBeyondAShortSetUpOnlyWhereItBlocks) {
  for_each_call([&](Form form, Collective collective) {
    Situation situation({.ranks = 4, .between_nodes = false}, false);
    situation.agreed.short_calls_only = true;
    situation.agreed.posts = true;
    Decision decision = situation(form, call_of(collective));
    if (form != Form::blocking && !lies_in_pieces(collective)) {
      EXPECT_EQ(decision.what, What::run);
      situation.found.prepared.too_long = true;
      decision = situation(form, call_of(collective));
    }
    EXPECT_TRUE(decision.eligible);
    EXPECT_EQ(decision.what, form == Form::blocking ? What::set_up : What::host);
    if (form == Form::blocking) {
      EXPECT_EQ(decision.extent, TeamExtent::all_calls);
    } else {
      EXPECT_STREQ(decision.reason, reasons::short_set_up);
    }
    situation.agreed.posts = false;
    situation.found.prepared.too_long = true;
    EXPECT_EQ(situation(form, call_of(collective)).what, form == Form::blocking ? What::set_up : What::host);
  });
}

TEST(Decide, AsksTheSchedulesLast) {
  for_each_call([&](Form form, Collective collective) {
    Situation situation({.ranks = 4, .between_nodes = false}, false);
    Decision decision = situation(form, call_of(collective));
    EXPECT_EQ(decision.what, What::run);
    EXPECT_EQ(decision.prepared, &situation.found.prepared);
    EXPECT_EQ(situation.found.asked, 1);
    situation.found.prepared.accelerated = false;
    decision = situation(form, call_of(collective));
    EXPECT_EQ(decision.what, What::host);
    EXPECT_STREQ(decision.reason, "the look-up's");
    EXPECT_TRUE(decision.eligible);
  });
}

TEST(Decide, PlansNothingForWhatIsTheHostsByItsSize) {
  for_each_call([&](Form form, Collective collective) {
    Situation situation({.ranks = 8, .between_nodes = true});
    const Decision decision = situation(form, call_of(collective));
    const bool scan = collective == Collective::scan || collective == Collective::exscan;
    const bool posted_among_neighbors = form != Form::blocking && on_neighbors(collective);
    const bool hosts = form == Form::persistent || scan || collective == Collective::gatherv || posted_among_neighbors;
    EXPECT_EQ(decision.what, hosts ? What::host : What::run);
    EXPECT_EQ(situation.found.asked, hosts ? 0 : 1);
    EXPECT_TRUE(decision.eligible);
  });
}

TEST(Decide, TimesOnlyBlockingCallsWhoseTrialIsDue) {
  for_each_call([&](Form form, Collective collective) {
    TrialClass tried{.trial = Trial({{1.6, 0.7}, {1, 0.2}}, {.calls_before = 2}), .plans = {"a plan"}};
    Situation situation({.ranks = 4, .between_nodes = false}, false);
    situation.found.prepared.tried = &tried;
    for (const bool accelerated : {true, false}) {
      situation.found.prepared.accelerated = accelerated;
      EXPECT_EQ(situation(form, call_of(collective)).what, accelerated ? What::run : What::host) << "not due yet";
    }
    while (!tried.trial.due()) tried.trial.count();
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(situation(form, call_of(collective)).what, form == Form::blocking ? What::time : What::host)
          << "asking changes nothing";
  });
}

TEST(Decide, LeavesLengthsThatMostRanksWishedForTheHost) {
  Situation situation({.ranks = 4, .between_nodes = false});
  situation.agreed.lengths_are_hosts = true;
  const Decision decision = situation(Form::blocking, call_of(Collective::alltoallv));
  EXPECT_EQ(decision.what, What::host);
  EXPECT_TRUE(decision.by_lengths);
  EXPECT_STREQ(decision.reason, plan::reasons::host_has_lengths);
  EXPECT_EQ(situation.found.asked, 0);
}

// ---- All ranks alike

bool same(const Decision& a, const Decision& b) {
  const std::string why_a = a.reason != nullptr ? a.reason : "", why_b = b.reason != nullptr ? b.reason : "";
  return a.what == b.what && a.eligible == b.eligible && a.by_lengths == b.by_lengths && a.extent == b.extent &&
         why_a == why_b;
}

// What a rank alone knows is how much it exchanges by pairs. Random states, the same for all ranks.
TEST(Decide, AlikeWhateverARankAloneKnows) {
  std::mt19937_64 random(test_seed());
  SCOPED_TRACE("seed " + std::to_string(test_seed()));
  for (int round = 0; round < 5000; ++round) {
    const auto draw = [&](std::uint64_t below) { return random() % below; };
    Situation situation({.ranks = static_cast<int>(2 + draw(30)), .between_nodes = draw(2) == 0}, draw(4) != 0);
    situation.agreed.road = static_cast<Road>(draw(4));
    situation.agreed.eligible_calls = static_cast<int>(draw(4));
    situation.agreed.setup_calls = static_cast<int>(draw(4));
    situation.agreed.posts = draw(2) == 0;
    situation.agreed.short_calls_only = draw(2) == 0;
    situation.agreed.lengths_are_hosts = draw(4) == 0;
    const auto collective = static_cast<Collective>(draw(collective_count));
    const Form form = forms[draw(3)];
    Call call = call_of(collective, std::size_t{1} << draw(20));
    const Decision first = situation(form, call);
    for (int rank = 1; rank < 4; ++rank) {
      if (lies_in_pieces(collective)) call.count = draw(std::uint64_t{1} << draw(40));
      EXPECT_TRUE(same(situation(form, call), first)) << name(collective);
    }
  }
}

// ---- Of ranks that make the calls

std::string text_of(const Outcome& outcome) {
  if (!outcome.is_done()) return outcome.reason();
  return outcome.code() == 0 ? "ran" : "failed: " + std::to_string(outcome.code());
}

class DecisionsOf : public testing::TestWithParam<Shape> {
 protected:
  // What became of each rank's calls, by rank; `call` makes one and says that.
  template <class CallOf>
  std::vector<std::vector<std::string>> of_calls(int calls, CallOf&& call) {
    const Shape shape = GetParam();
    Process process(shape.ranks);
    process.config().host_when_faster = true;
    process.config().setup_calls = 2;
    InProcessJob job(shape.ranks);
    job.bring_messages(seed, 2);
    std::vector<std::vector<std::string>> became(static_cast<std::size_t>(shape.ranks));
    EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
      PostingRank rank(job, oob.rank(), shape, seed);
      for (int i = 0; i < calls; ++i) {
        const std::string text = call(rank);
        if (text.starts_with("failed")) return text;
        became[static_cast<std::size_t>(oob.rank())].push_back(text);
      }
      return {};
    }),
              "");
    return became;
  }

  const std::uint64_t seed = test_seed();
  const testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

// An alltoallv whose lengths each rank draws by itself: the data's places are its own, too.
struct Exchange {
  Exchange(PostingRank& rank, std::uint64_t most) {
    request.call.collective = Collective::alltoallv;
    request.lists = &lists;
    const auto ranks = static_cast<std::size_t>(rank.communicator.ranks);
    const Layout& layout = rank.random() % 2 == 0 ? dense_layout() : sparse_layout();
    const std::size_t stride = static_cast<std::size_t>(layout.extent) / layout.size;
    data.resize(2 * ranks * stride * (most + 1));
    lists.sends.resize(ranks);
    lists.receives.resize(ranks);
    for (std::size_t other = 0; other < ranks; ++other) {
      auto* out = reinterpret_cast<std::byte*>(&data[other * stride * (most + 1)]);
      auto* in = reinterpret_cast<std::byte*>(&data[(ranks + other) * stride * (most + 1)]);
      // Its length is what the receiver has room for, at most: only the sender's differs.
      const std::size_t count = rank.random() % (most + 1);
      lists.sends[other] = {.address = out, .count = count, .type = &layout, .bytes = count * layout.size};
      lists.receives[other] = {.address = in, .count = most, .type = &layout, .bytes = most * layout.size};
      request.call.count += lists.sends[other].bytes;
    }
  }
  Request request;
  Lists lists;
  std::vector<std::uint64_t> data;
};

TEST_P(DecisionsOf, OnLengthsThatOnlyPairsKnowAreAlike) {
  constexpr std::uint64_t most = 1500;  // numbers: means on both sides of the rows'
  const auto became = of_calls(60, [](PostingRank& rank) {
    Exchange exchange(rank, most);
    return text_of(accelerate(rank.communicator, exchange.request, 0));
  });
  for (const auto& of_rank : became) EXPECT_EQ(of_rank, became.front());
  EXPECT_EQ(became.front()[0], reasons::not_set_up);
  EXPECT_EQ(became.front()[1], "ran");
}

// A gatherv of a few bytes from each rank, which the host has for its lengths.
struct Gathering {
  explicit Gathering(const PostingRank& rank) {
    request.call.collective = Collective::gatherv;
    request.lists = &lists;
    const auto ranks = static_cast<std::size_t>(rank.communicator.ranks);
    const Layout& layout = dense_layout();
    const auto piece = [&](std::size_t index) {
      return Piece{
          .address = reinterpret_cast<std::byte*>(&data[index]), .count = 1, .type = &layout, .bytes = layout.size};
    };
    data.resize(ranks + 1);
    lists.sends.resize(ranks);
    lists.receives.resize(ranks);
    lists.sends[0] = piece(ranks);
    for (std::size_t other = 0; rank.communicator.rank == 0 && other < ranks; ++other)
      lists.receives[other] = piece(other);
    request.call.count = layout.size;
  }
  Request request;
  Lists lists;
  std::vector<std::uint64_t> data;
};

// Ranks that need not read a call's arguments, and those that do, as they report it or have posted before, decide
// alike.
TEST_P(DecisionsOf, AreAlikeWhetherTheArgumentsWereReadOrNot) {
  constexpr int calls = 100;
  std::vector<int> unread(static_cast<std::size_t>(GetParam().ranks));
  const auto became = of_calls(calls, [&](PostingRank& rank) -> std::string {
    const int self = rank.communicator.rank;
    const bool reads = self % 2 == 0 && rank.random() % 2 == 0;
    if (const char* reason = reads ? nullptr : leave_unread(rank.communicator, Collective::gatherv)) {
      ++unread[static_cast<std::size_t>(self)];
      return reason;
    }
    Gathering gathering(rank);
    return text_of(accelerate(rank.communicator, gathering.request, 0));
  });
  for (const auto& of_rank : became) EXPECT_EQ(of_rank, became.front());
  EXPECT_EQ(became.front()[0], reasons::not_set_up);
  for (std::size_t rank = 1; rank < unread.size(); rank += 2) EXPECT_GT(unread[rank], calls / 2);
}

// Samples that the host has are told to the caller. On one rank no call says that it is through, as where an error
// handler does not return: the next call does, and the ranks come to a verdict all the same.
TEST_P(DecisionsOf, OnSamplesAreAlikeWhereARankLeavesSomeBehind) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  process.config().host_when_faster = true;
  process.config().trial = TrialMode::all;
  process.config().trial_after = 2;
  process.config().trial_percent = 1'000'000;  // on a loaded machine making plans takes as long as a thousand calls
  process.config().cache = false;
  process.config().setup_calls = 1;
  // Rates that are measured on a loaded machine may leave the host nothing to gain.
  process.config().reproducible = Reproducible::run;
  const unsigned long tried_before = trial_calls();
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  std::vector<std::string> became(static_cast<std::size_t>(shape.ranks));
  std::vector<int> samples(static_cast<std::size_t>(shape.ranks), 0);
  const int leaver = static_cast<int>(seed % static_cast<std::uint64_t>(shape.ranks));
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const auto own = static_cast<std::size_t>(oob.rank());
    PostingRank rank(job, oob.rank(), shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    const auto sum = rank.prepare_sum(rank.communicator, 20'000, 3, dense_layout());
    for (int call = 0; call < 500; ++call) {
      const Outcome outcome = accelerate(rank.communicator, sum->request, 0);
      if (outcome.is_done() && outcome.code() != 0) return "failed: " + std::to_string(outcome.code());
      became[own] += outcome.is_done() ? 'r' : outcome.sample() != nullptr ? 's' : 'h';
      if (outcome.is_done() || outcome.sample() == nullptr) continue;
      ++samples[own];
      if (oob.rank() != leaver || rank.random() % 2 == 0) end_host_call(rank.communicator, *outcome.sample());
    }
    return {};
  }),
            "");
  for (const std::string& of_rank : became) EXPECT_EQ(of_rank, became.front());
  EXPECT_GE(samples.front(), 3);
  // All ranks are of this process: what plait_trial_calls() says.
  EXPECT_GE(trial_calls() - tried_before, static_cast<unsigned long>(samples.front() * shape.ranks));
  EXPECT_NE(became.front().back(), 's') << "came to no verdict";
}

// Blocking calls of a class that nothing is planned for are the host's, so many on all ranks; then it is planned. One
// that is posted does not wait for that.
class FewCallsOf : public DecisionsOf {};

TEST_P(FewCallsOf, AreDecidedAlike) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  process.config().host_when_faster = true;
  process.config().trial = TrialMode::all;
  process.config().trial_after = 1;
  process.config().cache = false;
  process.config().setup_calls = 1;
  process.config().reproducible = Reproducible::run;
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  std::vector<std::vector<std::string>> became(static_cast<std::size_t>(shape.ranks));
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const auto own = static_cast<std::size_t>(oob.rank());
    PostingRank rank(job, oob.rank(), shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    const auto sum = rank.prepare_sum(rank.communicator, 1, 3, dense_layout());
    for (int call = 0; call < 30; ++call) {
      const Outcome outcome = accelerate(rank.communicator, sum->request, 0);
      if (outcome.is_done() && outcome.code() != 0) return "failed: " + std::to_string(outcome.code());
      became[own].push_back(outcome.is_done() ? "ran" : outcome.reason());
    }
    const auto posted = rank.prepare_sum(rank.communicator, 200, 3, dense_layout());
    const Decision decision = prepare_operation(*posted, Form::nonblocking, nullptr);
    became[own].push_back(decision.what == Decision::What::run ? "posted" : decision.reason);
    posted->prepared.reset();
    const Outcome outcome = accelerate(rank.communicator, posted->request, 0);
    became[own].push_back(outcome.is_done() ? "ran" : outcome.reason());
    return {};
  }),
            "");
  for (const auto& of_rank : became) EXPECT_EQ(of_rank, became.front());
  const auto by_host = std::ranges::count(became.front(), reasons::few_calls);
  EXPECT_LE(by_host, 16);
  const bool one_node = shape.on_node == shape.ranks;
  EXPECT_TRUE(one_node || by_host == 0) << by_host;
  EXPECT_TRUE(!one_node || shape.cores < shape.ranks || by_host > 0);
  EXPECT_EQ(std::ranges::count(became.front(), "ran"), 31 - by_host);
  EXPECT_EQ(became.front()[30], "posted");
}

INSTANTIATE_TEST_SUITE_P(Few, DecisionsOf,
                         testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 3}, Shape{3, 2}, Shape{8, 8}, Shape{8, 2},
                                         Shape{17, 5}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Few, FewCallsOf,
                         testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{2, 2, 2}, Shape{3, 3}, Shape{8, 8, 8},
                                         Shape{8, 2}, Shape{17, 5}),
                         name_of);

}  // namespace
}  // namespace plait::runtime
