// Reshardings made and run by ranks in one process: every element comes to where it belongs, ranks that disagree, or
// cannot go on, end as the others do.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/oob/verdict.h"
#include "runtime/reshard/resharding.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

// Where a resharding's members meet, once they have parted from the other ranks.
struct Party {
  InProcessJob& of(int members) {
    const std::scoped_lock lock(guard);
    if (job == nullptr) {
      job = std::make_unique<InProcessJob>(members);
      job->bring_messages(test_seed(), 3);
    }
    return *job;
  }
  std::mutex guard;
  std::unique_ptr<InProcessJob> job;
  std::atomic<int> alive{0};  // of its members, those that are
};

class PartyMembers final : public Members {
 public:
  PartyMembers(Party& party, Oob& all, Progress& progress, int on_node, bool has_memory)
      : party_(party), all_(all), progress_(progress), on_node_(on_node), has_memory_(has_memory) {
    ++party_.alive;
  }
  ~PartyMembers() override { --party_.alive; }

  Status part(bool takes_part) override {
    const std::uint8_t mine = takes_part ? 1 : 0;
    std::vector<std::uint8_t> all(static_cast<std::size_t>(all_.ranks()));
    if (Status status = all_.gather_all(&mine, 1, all.data(), "part"); !status.ok()) return status;
    if (!takes_part) return {};
    rank_ = std::accumulate(all.begin(), all.begin() + all_.rank(), 0);
    ranks_ = std::accumulate(all.begin(), all.end(), 0);
    own_ = party_.of(ranks_).oob(rank_);
    return {};
  }
  Oob& oob() override { return *own_; }
  std::unique_ptr<Communicator> make_communicator() override {
    if (!has_memory_) throw std::bad_alloc();
    return std::make_unique<RankCommunicator>(progress_, *party_.job, rank_, Shape{ranks_, on_node_});
  }

 private:
  Party& party_;
  Oob& all_;
  Progress& progress_;
  const int on_node_;
  const bool has_memory_;
  int rank_ = 0, ranks_ = 1;
  std::unique_ptr<Oob> own_;
};

// What a program gives; no ranks: consecutive ones.
struct Given {
  std::vector<int> source_mesh = {2, 2}, destination_mesh = {4};
  std::string source_spec = "S0S1", destination_spec = "RS0";
  std::vector<int> source_ranks, destination_ranks;
  std::vector<std::int64_t> shape = {12, 20};
  std::string options;
  Status element;

  ReshardArguments arguments() const {
    const auto mesh = [](const std::vector<int>& dims, const std::vector<int>& ranks, const std::string& spec) {
      return MeshArguments{static_cast<int>(dims.size()), dims.data(), ranks.empty() ? nullptr : ranks.data(),
                           spec.c_str()};
    };
    return {.source = mesh(source_mesh, source_ranks, source_spec),
            .destination = mesh(destination_mesh, destination_ranks, destination_spec),
            .ndims = static_cast<int>(shape.size()),
            .shape = shape.data(),
            .element = element,
            .element_bytes = sizeof(std::uint64_t),
            .options = options.c_str(),
            .wants_plan = true};
  }
};

// The elements of a part of the tensor, each of which is a function of its place.
std::vector<std::uint64_t> elements_of(const reshard::Box& box, const std::vector<std::int64_t>& shape, int round) {
  std::vector<std::uint64_t> elements(static_cast<std::size_t>(box.elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(i), number = 0, stride = 1;
    for (int d = box.dimensions; d-- > 0;) {
      number += (box.extent[static_cast<std::size_t>(d)].begin + rest % box.length(d)) * stride;
      rest /= box.length(d);
      stride *= shape[static_cast<std::size_t>(d)];
    }
    elements[i] = static_cast<std::uint64_t>(number) * 1000 + static_cast<std::uint64_t>(round);
  }
  return elements;
}

struct Sides {
  std::vector<std::uint64_t> source, destination, expected;

  Sides(const Resharding& resharding, const Given& given, int round)
      : source(elements_of(resharding.source_box(), given.shape, round)),
        expected(elements_of(resharding.destination_box(), given.shape, round)) {
    destination.assign(expected.size(), 0xABAB);
  }
};

std::string run_blocking(Resharding& resharding, const Given& given, int round) {
  Sides sides(resharding, given, round);
  if (resharding.execute(sides.source.data(), sides.destination.data()) != 0) return "it could not be executed";
  return sides.destination == sides.expected ? "" : "blocking: wrong data";
}

std::string run_posted(PostingRank& rank, Resharding& resharding, const Given& given, int round) {
  Sides sides(resharding, given, round);
  PostedOperation operation;
  operation.communicator = &resharding.communicator();
  resharding.prepare(operation, sides.source.data(), sides.destination.data());
  rank.post(operation);
  if (rank.wait_for(operation) != 0) return "the operation has failed";
  return sides.destination == sides.expected ? "" : "posted: wrong data";
}

// What a rank of the communicator has that the program names.
struct Made {
  PostingRank& posting;
  Oob& all;
  Result<std::unique_ptr<Resharding>>& made;

  int rank() const { return all.rank(); }
  bool ok() const { return made.ok(); }
  Resharding& operator*() const { return **made; }
  std::string message() const { return made.ok() ? "it was made" : made.status().message(); }
};

// A rank that is out of memory in one place.
struct Trouble {
  int rank = -1;
  bool at_members = false, at_communicator = false;
};

// Ranks that make a resharding and look at what has become of it: what the first finds wrong, or nothing.
class ReshardOf : public testing::Test {
 protected:
  using Give = std::function<Given(int rank)>;
  using Look = std::function<std::string(const Made& made)>;

  std::string make(Shape shape, const Give& give, const Look& look, Trouble trouble = {}) {
    Process process(shape.ranks);
    InProcessJob job(shape.ranks);
    return job.run([&](Oob& all) {
      const bool troubled = all.rank() == trouble.rank;
      PostingRank posting(job, all.rank(), shape, seed);
      const Given given = give(all.rank());
      const MakeMembers make_members = [&] {
        if (troubled && trouble.at_members) throw std::bad_alloc();
        return std::make_unique<PartyMembers>(party, all, posting.progress, shape.on_node,
                                              !(troubled && trouble.at_communicator));
      };
      Result<std::unique_ptr<Resharding>> made = Resharding::make(all, given.arguments(), make_members);
      return look({posting, all, made});
    });
  }
  // All ranks give the same, and it works.
  std::string make_and_run(Shape shape, const Given& given) {
    return make(
        shape, [&](int) { return given; },
        [&](const Made& one) -> std::string {
          if (!one.ok()) return one.message();
          for (int round = 0; round < 2; ++round)
            if (std::string wrong = run_blocking(*one, given, round); !wrong.empty()) return wrong;
          for (int round = 2; round < 4 && (*one).is_shared(); ++round)
            if (std::string wrong = run_posted(one.posting, *one, given, round); !wrong.empty()) return wrong;
          return {};
        });
  }
  // What each rank is to be told.
  std::string make_in_vain(int ranks, const Give& give, const std::function<std::string(int rank)>& told,
                           Trouble trouble = {}) {
    const auto look = [&](const Made& one) {
      return one.message() == told(one.rank()) ? "" : "it says: " + one.message();
    };
    return make({ranks, 2}, give, look, trouble);
  }

  const std::uint64_t seed = test_seed();
  const testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  Party party;
};

TEST_F(ReshardOf, EveryStrategyBringsEachElementToItsPlace) {
  for (const char* strategy : {"broadcast", "send-recv", "local-allgather", "global-allgather"}) {
    party.job.reset();
    Given given;
    given.destination_ranks = {3, 4, 5, 6};  // beside ranks that have no part
    given.options = std::string("strategy=") + strategy;
    EXPECT_EQ(make_and_run({9, 2}, given), "") << strategy;
  }
}

TEST_F(ReshardOf, OneRankThatHasBothSidesRunsAlone) {
  Given given;
  given.source_mesh = given.destination_mesh = {1};
  given.source_ranks = given.destination_ranks = {1};
  given.source_spec = given.destination_spec = "RR";
  EXPECT_EQ(make_and_run({3, 3}, given), "");
}

TEST_F(ReshardOf, RanksThatGiveSomethingElseAllHearOfTheFirstArgument) {
  using Change = std::function<void(Given&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"src_mesh",
       [](Given& given) {
         given.source_ranks = {0, 1, 3, 2};
       }},
      {"src_spec", [](Given& given) { given.source_spec = "S1S0"; }},
      {"dst_mesh",
       [](Given& given) {
         given.destination_mesh = {2, 2};
       }},
      {"dst_spec", [](Given& given) { given.destination_spec = "S0R"; }},
      {"shape",
       [](Given& given) {
         given.shape = {20, 12};
       }},
      {"options", [](Given& given) { given.options = "chunks=3"; }}};
  for (const auto& [argument, change] : changes) {
    const auto give = [&change = change](int rank) {
      Given given;
      if (rank == 2) change(given);
      return given;
    };
    EXPECT_EQ(
        make_in_vain(5, give, [&argument = argument](int) { return argument + ": the ranks do not give the same"; }),
        "");
  }
}

TEST_F(ReshardOf, OneRanksComplaintReachesAll) {
  const std::string complaint = "options: \"chunks=many\": expected a number up to 4096";
  EXPECT_EQ(make_in_vain(
                5,
                [](int rank) {
                  Given given;
                  if (rank == 3) given.options = "seed=1,chunks=many";
                  return given;
                },
                [&](int rank) { return rank == 3 ? complaint : complaint + " (on rank 3)"; }),
            "");
}

TEST_F(ReshardOf, EachRankWithAComplaintHasItsOwn) {
  EXPECT_EQ(make_in_vain(
                4,
                [](int rank) {
                  Given given;
                  if (rank == 1) given.element = {Code::invalid, "element: is not contiguous"};
                  if (rank == 2) given.shape.clear();
                  return given;
                },
                [](int rank) -> std::string {
                  if (rank == 2) return "shape: 0 dimensions: expected 1 to 8";
                  return std::string("element: is not contiguous") + (rank == 1 ? "" : " (on rank 1)");
                }),
            "");
}

TEST_F(ReshardOf, ARankWithoutMemoryForItsMembersStopsAll) {
  EXPECT_EQ(make_in_vain(
                5, [](int) { return Given(); },
                [](int rank) -> std::string {
                  return rank == 2 ? "out of memory" : "the ranks could not go on together: rank 2 is out of memory";
                },
                {.rank = 2, .at_members = true}),
            "");
}

TEST_F(ReshardOf, AMemberWithoutMemoryStopsThoseThatHaveNoPart) {
  EXPECT_EQ(make_in_vain(
                6, [](int) { return Given(); },
                [](int rank) -> std::string {
                  if (rank == 1) return "out of memory";
                  return rank < 4 ? "the ranks could not go on together: rank 1 is out of memory"
                                  : "another rank could not prepare the resharding";
                },
                {.rank = 1, .at_communicator = true}),
            "");
}

TEST_F(ReshardOf, ARankThatWithdrawsIsNotWaitedFor) {
  Process process(3);
  InProcessJob job(3);
  EXPECT_EQ(job.run([&](Oob& all) -> std::string {
    const std::vector<Said> said = {{"plan", "the same"}};
    const Status agreed = agree_if_possible(all, {}, [&] {
      if (all.rank() == 1) throw std::bad_alloc();
      return said;
    });
    if (all.rank() == 1) return agreed.message() == "out of memory" ? "" : agreed.message();
    return agreed.code() == Code::peer_failed ? "" : "it does not hear of rank 1";
  }),
            "");
}

TEST_F(ReshardOf, AMemberThatIsGoneBreaksThePlanForGood) {
  Given given;
  given.destination_spec = "RR";  // all need what it has
  EXPECT_EQ(make(
                {4, 4}, [&](int) { return given; },
                [&](const Made& one) -> std::string {
                  if (!one.ok()) return one.message();
                  if (one.rank() == 3) {
                    party.job->network().cut_off(3);
                    return {};
                  }
                  if (run_blocking(*one, given, 0).empty()) return "it was executed";
                  if ((*one).communicator().road != Road::broken) return "it is not broken";
                  return run_blocking(*one, given, 1).empty() ? "it was executed again" : "";
                }),
            "");
}

TEST_F(ReshardOf, WhatIsLeftIsTakenDownAtTheEnd) {
  EXPECT_EQ(make(
                {4, 2}, [](int) { return Given(); },
                [&](const Made& one) -> std::string {
                  if (!one.ok()) return one.message();
                  static_cast<void>(one.made->release());
                  if (!one.all.meet("make plans").ok()) return "not all have made one";
                  if (one.rank() == 0) finish_reshardings();  // those of the whole process
                  return one.all.meet("take plans down").ok() ? "" : "not all are down";
                }),
            "");
  EXPECT_EQ(party.alive, 0);
}

TEST(ReshardOptions, AreReadInAnyOrder) {
  const Result<reshard::Options> options =
      parse_reshard_options(" chunks=4,strategy=send-recv seed=7 scheduler=naive ");
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->strategy, reshard::Strategy::send_recv);
  EXPECT_EQ(options->scheduler, *reshard::scheduler_named("naive"));
  EXPECT_EQ(options->budget.seed, 7u);
  EXPECT_EQ(options->chunks, 4);
}

TEST(ReshardOptions, ThatAreWrongAreNamed) {
  for (const char* wrong : {"chunks", "chunks=", "chunks=-1", "chunks=4097", "seed=9999999999999999999", "speed=1"})
    EXPECT_EQ(parse_reshard_options(wrong).status().message().find(std::string("options: \"") + wrong), 0u) << wrong;
  EXPECT_FALSE(parse_reshard_options("strategy=fast").ok());
  EXPECT_FALSE(parse_reshard_options("scheduler=").ok());
}

// ---- The verdict ----

TEST(Verdict, NamesTheLowestRankThatRefusesAndTheFirstSubject) {
  InProcessJob job(5);
  EXPECT_EQ(job.run([](Oob& oob) -> std::string {
    Verdict verdict;
    std::array<std::uint64_t, 3> prints = {7, ~std::uint64_t{0}, 9};
    if (!compare(oob, true, prints, "agree", verdict).ok()) return "no verdict";
    if (verdict.some_refuse() || !verdict.all_same()) return "all are well and say the same";
    prints[1] >>= oob.rank() == 4 ? 8 : 0;
    prints[2] += static_cast<std::uint64_t>(oob.rank()) * 2;
    if (!compare(oob, oob.rank() < 2, prints, "agree", verdict).ok()) return "no verdict";
    if (verdict.first_refusing != 2 || verdict.speaker() != 2) return "not rank 2";
    return verdict.first_differing == 1 ? "" : "not the second subject";
  }),
            "");
}

}  // namespace
}  // namespace plait::runtime
