// The parts of PLAIT_OVERLAP that need no job: which call of the plan a call is, the helper's share of a core, and what
// the report makes of it.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "runtime/fusion/overlap_counts.h"
#include "runtime/fusion/step_matcher.h"
#include "runtime/progress/host_turns.h"
#include "runtime/progress/progress_share.h"

namespace plait::runtime {
namespace {

OverlapPlan plan_of(const std::vector<std::size_t>& bytes, const std::vector<std::size_t>& groups) {
  OverlapPlan plan;
  for (const std::size_t size : bytes) plan.calls.push_back({.bytes = size, .layer = {}});
  std::size_t first = 0;
  for (const std::size_t calls : groups) {
    plan.groups.push_back({.first_call = first, .calls = calls, .share = {}});
    first += calls;
  }
  return plan;
}

std::vector<int> places(StepMatcher& matcher, const std::vector<std::size_t>& bytes) {
  std::vector<int> found;
  for (const std::size_t size : bytes) {
    const auto place = matcher.next(size);
    found.push_back(place.has_value() ? static_cast<int>(place->call) : -1);
  }
  return found;
}

TEST(StepMatcher, GoesRoundTheStep) {
  StepMatcher matcher(plan_of({10, 20, 10, 30}, {2, 2}));
  EXPECT_EQ(places(matcher, {10, 20, 10, 30, 10, 20, 10, 30}), (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(StepMatcher, PassesOverWhatIsMissing) {
  StepMatcher matcher(plan_of({10, 20, 10, 30}, {2, 2}));
  EXPECT_EQ(places(matcher, {10, 10, 30, 20, 10}), (std::vector<int>{0, 2, 3, 1, 2}));
}

TEST(StepMatcher, AnUnknownSizeMovesNothing) {
  StepMatcher matcher(plan_of({10, 20, 30}, {3}));
  EXPECT_EQ(places(matcher, {10, 11, 20, 12, 30, 10}), (std::vector<int>{0, -1, 1, -1, 2, 0}));
}

TEST(StepMatcher, SaysWhatIsLeftOfTheGroup) {
  StepMatcher matcher(plan_of({10, 20, 30, 40}, {3, 1}));
  for (const std::size_t left : {3, 2, 1}) {
    const auto place = matcher.next(40 - left * 10);
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->group, 0u);
    EXPECT_EQ(place->left, left);
  }
  EXPECT_EQ(matcher.next(40)->group, 1u);
}

// A thread that takes all it is given, in pieces of random length, on a made-up clock.
double share_taken(double duty, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  DutyMeter meter;
  std::uint64_t wall = 1'000'000, processor = 500;
  meter.restart(wall, processor);
  const std::uint64_t first_wall = wall, first_processor = processor;
  while (wall < first_wall + 1'000'000'000) {
    const std::uint64_t piece = 1000 + random() % 200'000;
    wall += piece;
    processor += piece;
    wall += meter.rest_ns(wall, processor, duty);
  }
  return static_cast<double>(processor - first_processor) / static_cast<double>(wall - first_wall);
}

TEST(DutyMeter, KeepsAThreadToItsShare) {
  for (const double duty : {0.05, 0.25, 0.5, 0.9})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(seed);
      EXPECT_NEAR(share_taken(duty, seed), duty, 0.02);
    }
}

TEST(DutyMeter, DoesNotSaveUpMoreThanAPeriod) {
  DutyMeter meter;
  meter.restart(0, 0);
  EXPECT_EQ(meter.rest_ns(1'000'000'000, 0, 0.5), 0u);  // idle for a second
  // Half a period of credit, spent by a millisecond of work: half of that is its share.
  EXPECT_EQ(meter.rest_ns(1'001'000'000, 1'000'000, 0.5), 0u);
  EXPECT_NEAR(static_cast<double>(meter.rest_ns(1'002'000'000, 2'000'000, 0.5)), 1'000'000, 10);
}

TEST(ProgressShare, IsTheLargestUnderWay) {
  WorkTeam team;
  team.set_workers(3);
  ProgressShare share;
  share.set_threads(4, &team);
  const auto at_hand = [&] { return CommunicationShare{team.threads(), share.duty()}; };
  EXPECT_EQ(share.set_default_duty(0.5), 1);
  EXPECT_EQ(share.set_default_threads(2), 1);
  EXPECT_EQ(at_hand(), (CommunicationShare{2, 0.5}));
  share.enter({1, 0.25});
  EXPECT_EQ(at_hand(), (CommunicationShare{1, 0.25}));
  share.enter({4, 0.1});
  EXPECT_EQ(at_hand(), (CommunicationShare{4, 0.1}));  // 0.4 of a core in all
  share.enter({1, 0.75});
  EXPECT_EQ(at_hand(), (CommunicationShare{1, 0.75}));
  share.enter({3, 0.25});  // as much, by more threads
  EXPECT_EQ(at_hand(), (CommunicationShare{3, 0.25}));
  for (const CommunicationShare& each : {CommunicationShare{3, 0.25}, {1, 0.75}, {1, 0.25}}) share.leave(each);
  EXPECT_EQ(at_hand(), (CommunicationShare{4, 0.1}));
  share.leave({4, 0.1});
  EXPECT_EQ(at_hand(), (CommunicationShare{2, 0.5}));
  EXPECT_EQ(share.set_default_duty(1), 0.5);
  EXPECT_EQ(share.set_default_threads(1), 2);
}

TEST(ProgressShare, ThreadsThatThereAreHaveItAll) {
  WorkTeam team;
  team.set_workers(1);
  ProgressShare share;
  share.set_threads(2, &team);
  share.enter({4, 0.25});
  EXPECT_EQ(team.threads(), 2);
  EXPECT_EQ(share.duty(), 0.5);
  share.dismiss_team();
  EXPECT_EQ(share.in_use({4, 0.25}), (CommunicationShare{2, 0.5})) << "the report comes later";
}

TEST(ShareAmong, IsThatOfAllThreadsUpToTheirCores) {
  EXPECT_EQ(share_among({1, 0.25}, 1), (CommunicationShare{1, 0.25}));
  EXPECT_EQ(share_among({2, 0.3}, 2), (CommunicationShare{2, 0.3}));
  EXPECT_EQ(share_among({2, 0.25}, 1), (CommunicationShare{1, 0.5}));
  EXPECT_EQ(share_among({8, 0.5}, 1), (CommunicationShare{1, 1}));
  EXPECT_EQ(share_among({3, 0.5}, 2), (CommunicationShare{2, 0.75}));
}

TEST(HostTurns, TurnsThatFollowEachOtherAreAWait) {
  HostTurns turns;
  std::uint64_t now = 1'000'000'000;
  for (int i = 0; i < 100; ++i) turns.note(now += 5'000'000);  // a look now and then
  EXPECT_FALSE(turns.waits(0));
  for (int i = 0; i < 40; ++i) turns.note(now += 1000);
  EXPECT_TRUE(turns.waits(turns.in_all()));
  turns.forget();
  const std::uint64_t post = turns.in_all();
  EXPECT_FALSE(turns.waits(post));
  for (int i = 0; i < 256; ++i) turns.note(now += 5'000'000);  // but not for ever
  EXPECT_TRUE(turns.waits(post));
}

TEST(HostTurns, PostsElsewhereHideNoWait) {
  HostTurns turns;
  const std::uint64_t post = turns.in_all();
  std::uint64_t now = 1'000'000'000;
  for (int i = 0; i < 128; ++i) {  // the program posts on another communicator between its looks at this one's request
    EXPECT_FALSE(turns.waits(post));
    turns.note(now += 1000);
    turns.note(now += 1000);
    turns.forget();
  }
  EXPECT_TRUE(turns.waits(post));
}

TEST(HostTurns, AreToldApartByThread) {
  HostTurns turns;
  turns.note(5);
  EXPECT_EQ(HostTurns::own_last_ns(), 5u);
  std::thread([&] {
    EXPECT_EQ(HostTurns::own_last_ns(), 0u);
    turns.note(7);
    EXPECT_EQ(HostTurns::own_last_ns(), 7u);
  }).join();
  EXPECT_EQ(HostTurns::own_last_ns(), 5u);
  HostTurns::note_own(9);
  EXPECT_EQ(HostTurns::own_last_ns(), 9u);
}

TEST(ExposedTime, IsTheWaitsWithinTheWhole) {
  ExposedTime time;
  time.note_turn(500);
  time.begin(1'000);
  time.note_turn(1'500);  // since the begin
  time.begin(2'000);
  time.note_turn(2'500);
  time.note_turn(90'000'000);  // too late to have been a wait
  time.note_turn(90'000'100);
  time.forget_turn();
  time.note_turn(90'000'200);
  time.end(95'000'000);
  time.end(100'001'000);
  EXPECT_EQ(time.whole_ns(), 100'000'000u);
  EXPECT_EQ(time.exposed_ns(), 500u + 1000u + 100u);
}

TEST(OverlapReport, SaysSharesReasonsAndTimes) {
  OverlapCounts counts;
  OverlapPlan plan = plan_of({10, 20, 30}, {2, 1});
  plan.model = "small";
  plan.groups[0].share = {.threads = 2, .duty = 0.25};
  counts.start();
  EXPECT_EQ(counts.add(plan), 0u);
  for (int i = 0; i < 6; ++i) counts.count_fused(0, 30);
  counts.count_alone("because", 3);
  counts.count_early();
  counts.time.begin(0);
  counts.time.end(2'000'000'000);
  OverlapReport report;
  merge_overlap_facts(report, counts.facts());
  merge_overlap_facts(report, counts.facts());
  merge_overlap_facts(report, OverlapCounts().facts());
  std::string text;
  for (const std::string& line : overlap_report_lines(report)) text += line + "\n";
  for (const char* words :
       {"6 groups a rank of the plan for small", "1 begun before", "1 x 0.5 (1 group), 1 x 1 (1 group)",
        "one helper thread has the shares of several", "3 calls a rank alone: because",
        "2.000 s of communication a rank, 2.000 s hidden, 0.000 s exposed"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " in " << text;
  const nlohmann::json json = overlap_report_json(report);
  EXPECT_EQ(json["groups"][0]["runs"], 6);
  EXPECT_EQ(json["groups"][0]["threads_in_use"], 1);
  EXPECT_EQ(json["groups"][0]["duty_in_use"], 0.5);
  EXPECT_EQ(json["alone"]["because"], 3);
  EXPECT_TRUE(overlap_report_lines(OverlapReport()).empty());
}

std::string lines_of(const OverlapReport& report) {
  std::string text;
  for (const std::string& line : overlap_report_lines(report)) text += line + "\n";
  return text;
}

OverlapReport report_of(const std::vector<const OverlapCounts*>& ranks) {
  OverlapReport report;
  for (const OverlapCounts* counts : ranks) merge_overlap_facts(report, counts->facts());
  return report;
}

TEST(OverlapReport, SaysWhatEachKindOfCommunicatorHasLearned) {
  // Four ranks; the halves' plans come in another order on the second half, whose first rank is the third.
  OverlapCounts first, second, third, fourth;
  const OverlapPlan whole = plan_of({10, 20, 30}, {2, 1}), half = plan_of({50, 60}, {1, 1});
  for (OverlapCounts* counts : {&first, &second}) {
    counts->start();
    counts->count_fused(counts->add(whole, 4), 30);
    counts->count_fused(counts->add(half, 2) + 1, 60);
  }
  for (OverlapCounts* counts : {&third, &fourth}) {
    counts->start();
    counts->count_fused(counts->add(half, 2) + 1, 60);
    counts->count_fused(counts->add(whole, 4), 30);
  }
  OverlapCounts::Place of_whole, of_half, of_other_half, of_none;
  first.note_verdict(of_whole, {.ranks = 4, .calls = 3}, true, "planned for all");
  first.note_verdict(of_half, {.ranks = 2, .calls = 0}, false, "the steps change");
  first.note_verdict(of_half, {.ranks = 2, .calls = 2}, true, "planned for a half");
  third.note_verdict(of_other_half, {.ranks = 2, .calls = 2}, true, "planned for the other half");
  third.note_verdict(of_other_half, {.ranks = 2, .calls = 2}, false, "planned for the other half: not taken");
  third.note_verdict(of_none, {.ranks = 2, .calls = 0}, false, "no steps");
  const OverlapReport report = report_of({&first, &second, &third, &fourth});
  const std::string text = lines_of(report);
  for (const char* words : {"overlap: auto: 4 ranks: planned for all\n",
                            "overlap: auto: 2 ranks (2 communicators, 1 with a plan): planned for a half\n",
                            "overlap: auto: 2 ranks: no steps\n", "overlap: 2 groups a rank of 2 plans,",
                            "steps of 3 calls on 4 ranks: 1 groups a rank, threads x",
                            "steps of 2 calls on 2 ranks: 1 groups a rank, threads x"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " in " << text;
  EXPECT_EQ(text.find("steps change"), std::string::npos) << text;
  const nlohmann::json json = overlap_report_json(report);
  ASSERT_EQ(json["groups"].size(), 4u);
  for (const nlohmann::json& group : json["groups"]) {
    const bool of_all = group["communicator_ranks"] == 4;
    EXPECT_EQ(group["step_calls"], of_all ? 3 : 2);
    EXPECT_EQ(group["bytes"], group["runs"] == 0 ? 0 : of_all ? 30 : 60);
  }
  ASSERT_EQ(json["learned"].size(), 3u);
  std::uint64_t communicators = 0;
  for (const nlohmann::json& learned : json["learned"]) communicators += learned["communicators"].get<std::uint64_t>();
  EXPECT_EQ(communicators, 4u);
  EXPECT_TRUE(json["auto"].get<std::string>().starts_with("planned"));
}

// A program that makes and frees communicators, each of which learns a plan.
TEST(OverlapReport, IsBoundedForAnyNumberOfCommunicators) {
  OverlapCounts equal, different;
  equal.start();
  different.start();
  for (std::size_t i = 0; i < 1000; ++i) {
    OverlapCounts::Place place;
    OverlapPlan plan = plan_of({10, 20, 30}, {2, 1});
    plan.backward_seconds = static_cast<double>(i);  // what was measured is never the same
    const std::size_t group = equal.add(plan, 4);
    EXPECT_EQ(group, 0u);
    equal.count_fused(group + 1, 30);
    equal.note_verdict(place, {.ranks = 4, .calls = 3}, true, "planned after " + std::to_string(i));
    OverlapCounts::Place other;
    const OverlapPlan own = plan_of({10, 20 + i}, {1, 1});
    different.count_fused(different.add(own, 4), 10);
    different.note_verdict(other, {.ranks = 4, .calls = 2 + i}, i % 2 == 0, "planned after " + std::to_string(i));
  }
  OverlapReport report = report_of({&equal});
  EXPECT_EQ(overlap_report_lines(report).size(), 3u);
  EXPECT_NE(lines_of(report).find("4 ranks (1000 communicators, 1000 with a plan): planned after 999"),
            std::string::npos);
  nlohmann::json json = overlap_report_json(report);
  ASSERT_EQ(json["groups"].size(), 2u);
  EXPECT_EQ(json["groups"][1]["runs"], 1000);
  EXPECT_FALSE(json.contains("more_groups"));

  report = report_of({&different, &different});
  EXPECT_LT(overlap_report_lines(report).size(), 20u);
  EXPECT_NE(lines_of(report).find(" communicators of other kinds, "), std::string::npos);
  json = overlap_report_json(report);
  EXPECT_LT(json["groups"].size(), 200u);
  EXPECT_LT(json["learned"].size(), 100u);
  std::uint64_t runs = json["more_groups"]["runs"], communicators = 0, planned = 0;
  for (const nlohmann::json& group : json["groups"]) runs += group["runs"].get<std::uint64_t>();
  for (const nlohmann::json& learned : json["learned"]) {
    communicators += learned["communicators"].get<std::uint64_t>();
    planned += learned["planned"].get<std::uint64_t>();
  }
  EXPECT_EQ(runs, 1000u);
  EXPECT_EQ(communicators, 2000u);  // both ranks' facts are those of a first rank
  EXPECT_EQ(planned, 1000u);
  EXPECT_LT(different.facts().dump().size(), 20000u);
}

}  // namespace
}  // namespace plait::runtime
