// What the tests of all operators have in common: ranks in one process that make a plan together, run it and look at
// their outputs.
//
// A Kind is an operator and its cases:
//   Plan, Arguments                      of the operator
//   Case                                 with `ranks`, `options`, `where` and `shares_memory` (PlanCase)
//   Data                                 what one rank has
//   Shared                               what the ranks' threads share beside that; made of a case
//   make_data(given, rank), draw(given, rank, round, data), floats(given, rank)
//   arguments(given, data, output), start(plan, data)
//   wrong(rank, round)                   what is wrong with the output of a PlanRank; nothing: ""
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/fused/plan_ranks.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/posting.h"
#include "tests/runtime/process.h"
#include "tl/shm/shared_heap.h"

namespace plait::fused {

struct PlanCase {
  Shape ranks{2, 2};
  std::string options = {};
  Where where = Where::private_memory;
  bool shares_memory = true;  // else all goes by messages

  std::string text() const {
    return std::to_string(ranks.ranks) + " ranks, " + std::to_string(ranks.on_node) + " on a node, " + options;
  }
};

// One rank of a case, which has made its plan.
template <class Kind>
struct PlanRank {
  const typename Kind::Case& given;
  int rank;
  std::vector<typename Kind::Data> all;  // of all ranks
  OutputMemory& output;
  typename Kind::Shared& shared;
  Result<std::unique_ptr<typename Kind::Plan>>& made;

  typename Kind::Data& own() { return all[static_cast<std::size_t>(rank)]; }
  typename Kind::Plan& plan() { return **made; }
  void draw(int round) {
    for (std::size_t of = 0; of < all.size(); ++of) Kind::draw(given, static_cast<int>(of), round, all[of]);
  }
  std::string run_once() {
    if (Status status = Kind::start(plan(), own()); !status.ok()) return "start: " + status.message();
    if (Status status = plan().wait(); !status.ok()) return "wait: " + status.message();
    return {};
  }
  std::string run(int round) {
    output.fill();
    if (std::string wrong = run_once(); !wrong.empty()) return wrong;
    if (!output.is_untouched_behind()) return "something behind the output is written";
    return Kind::wrong(*this, round);
  }
};

template <class Kind>
class PlansOf : public testing::Test {
 protected:
  using Case = typename Kind::Case;
  using Rank = PlanRank<Kind>;
  using Arguments = typename Kind::Arguments;
  using Change = std::function<void(int rank, Arguments& arguments)>;
  using Look = std::function<std::string(Rank& rank)>;

  static void SetUpTestSuite() { static_cast<void>(SharedHeap::create({.bytes = std::size_t{1} << 30})); }

  std::string make(
      const Case& given, const Look& look, const Change& change = [](int, Arguments&) {}) {
    Process process(given.ranks.ranks);
    process.config().channels = {"mpi"};
    if (given.shares_memory) process.config().channels = {"shm", "mpi"};
    InProcessJob job(given.ranks.ranks), party(given.ranks.ranks);
    party.bring_messages(test_seed(), 3);
    typename Kind::Shared shared(given);
    return job.run([&](Oob& all) {
      PostingRank posting(job, all.rank(), given.ranks, test_seed());
      std::vector<typename Kind::Data> data;
      for (int rank = 0; rank < given.ranks.ranks; ++rank) data.push_back(Kind::make_data(given, rank));
      OutputMemory output(Kind::floats(given, all.rank()), given.where);
      Arguments arguments = Kind::arguments(given, data[static_cast<std::size_t>(all.rank())], output.data());
      change(all.rank(), arguments);
      Result<std::unique_ptr<typename Kind::Plan>> made = Kind::Plan::make(all, arguments, [&] {
        return std::make_unique<AllMembers>(party, posting.progress, all.rank(), given.ranks);
      });
      Rank rank{given, all.rank(), std::move(data), output, shared, made};
      return look(rank);
    });
  }

  std::string make_and_run(const Case& given, int rounds) {
    return make(given, [rounds](Rank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      for (int round = 0; round < rounds; ++round) {
        rank.draw(round);
        if (std::string wrong = rank.run(round); !wrong.empty()) return "round " + std::to_string(round) + ": " + wrong;
      }
      return {};
    });
  }

  // Without a word between the runs: a rank may be a run ahead of another.
  std::string run_at_once(const Case& given, int rounds) {
    return make(given, [&](Rank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      const std::size_t floats = Kind::floats(given, rank.rank);
      std::vector<std::vector<float>> expected;
      for (int round = 0; round < rounds; ++round) {
        rank.draw(round % 3);
        rank.output.fill();
        if (std::string wrong = round < 3 ? rank.run(round) : rank.run_once(); !wrong.empty()) return wrong;
        const float* output = rank.output.data();
        if (round < 3) expected.emplace_back(output, output + floats);
        const std::vector<float>& same = expected[static_cast<std::size_t>(round % 3)];
        if (!std::equal(same.begin(), same.end(), output)) return "round " + std::to_string(round) + " has other bits";
      }
      return {};
    });
  }

  // Every second run is one that rank 1 makes wrong: all are told, and no output is touched; the others are right.
  std::string refuse_by_turns(const Case& given, const std::function<Status(Rank& rank)>& start_wrong,
                              const std::string& told) {
    return make(given, [&](Rank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      for (int round = 0; round < 6; ++round) {
        rank.draw(round);
        if (round % 2 == 0) {
          if (std::string bad = rank.run(round); !bad.empty()) return "well: " + bad;
          continue;
        }
        rank.output.fill();
        static_cast<void>(rank.rank == 1 ? start_wrong(rank) : Kind::start(rank.plan(), rank.own()));
        const Status status = rank.plan().wait();
        if (status.code() != Code::invalid || status.message().find(told) != 0 ||
            status.message().find("(on rank 1)") == std::string::npos)
          return "it says: " + status.message();
        if (!rank.output.is_untouched()) return "the output is touched";
      }
      return {};
    });
  }

  // What rank 1 gives makes no plan on any rank, and all are told why.
  using Wrongs = std::vector<std::pair<std::string, std::function<void(Arguments&)>>>;
  void expect_refused(const Case& given, const Wrongs& wrongs) {
    for (const auto& [told, change] : wrongs) {
      const auto look = [&told = told](Rank& rank) -> std::string {
        if (rank.made.ok()) return "it was made";
        const std::string message = rank.made.status().message();
        const bool names_rank = rank.rank == 1 || message.find("(on rank 1)") != std::string::npos;
        return message.find(told) == 0 && names_rank ? "" : "it says: " + message;
      };
      EXPECT_EQ(make(given, look,
                     [&change = change](int rank, Arguments& arguments) {
                       if (rank == 1) change(arguments);
                     }),
                "");
    }
  }

  void expect_told(const Case& given, const std::string& told, const Change& change) {
    const auto look = [&told](Rank& rank) {
      const std::string message = rank.made.ok() ? "it was made" : rank.made.status().message();
      return message == told ? "" : "it says: " + message;
    };
    EXPECT_EQ(make(given, look, change), "");
  }

  // Each way to the other ranks, as the plan describes it.
  void expect_ways(Case given) {
    struct Way {
      Shape ranks;
      Where where;
      const char* says;
    };
    const std::vector<Way> ways = {{{2, 2}, Where::shared_heap, "\"direct\": 1, \"staged\": 0, \"messages\": 0"},
                                   {{2, 2}, Where::private_memory, "\"direct\": 0, \"staged\": 1, \"messages\": 0"},
                                   {{4, 2}, Where::shared_heap, "\"direct\": 1, \"staged\": 0, \"messages\": 2"}};
    for (const Way& way : ways) {
      given.ranks = way.ranks;
      given.where = way.where;
      EXPECT_EQ(make(given,
                     [&](Rank& rank) -> std::string {
                       if (!rank.made.ok()) return rank.made.status().message();
                       const std::string& description = rank.plan().description();
                       return description.find(way.says) != std::string::npos ? "" : description;
                     }),
                "");
    }
  }

  // The second start is an error, and changes nothing of the run that is under way.
  std::string start_once_at_a_time(const Case& given) {
    return make(given, [&given](Rank& rank) -> std::string {
      if (!rank.made.ok()) return rank.made.status().message();
      if (rank.plan().wait().ok()) return "a plan that was not started is waited for";
      if (!Kind::start(rank.plan(), rank.own()).ok()) return "it is not started";
      typename Kind::Data other = rank.own();
      Kind::draw(given, rank.rank, 1, other);
      if (Kind::start(rank.plan(), other).ok()) return "it is started twice";
      return rank.plan().wait().ok() ? Kind::wrong(rank, 0) : "it is not waited for";
    });
  }
};

// Any number of ranks, on nodes of any number, any options and place of the outputs.
inline void draw_plan_case(std::mt19937_64& random, PlanCase& given, std::int64_t most_slice) {
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  given.ranks.ranks = static_cast<int>(draw(1, 8));
  given.ranks.on_node = static_cast<int>(draw(1, given.ranks.ranks));
  given.options = "workers=" + std::to_string(draw(1, 3)) + " slice=" + std::to_string(draw(0, most_slice)) +
                  (draw(0, 1) == 0 ? " order=plain" : "");
  given.where = draw(0, 1) == 0 ? Where::private_memory : Where::shared_heap;
  given.shares_memory = draw(0, 3) != 0;
}

}  // namespace plait::fused
