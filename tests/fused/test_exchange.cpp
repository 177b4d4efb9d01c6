// What an exchange tells and whom: who listens hears of nobody once the run is refused; a rank that fails after that is
// noticed; and where there is no room for inboxes, one rank says so.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fused/exchange/exchange.h"
#include "fused/ground/ground.h"
#include "tests/fused/plan_ranks.h"

namespace plait::fused {
namespace {

constexpr Shape pair_of_ranks{2, 2};

class CountingListener final : public Listener {
 public:
  void heard(int rank) noexcept override { ++times[static_cast<std::size_t>(rank)]; }
  std::vector<int> times = std::vector<int>(2);
};

// Two ranks with one kept slice for each other.
ExchangeRequest one_kept_slice(const Ground& ground, std::uint64_t rows, Listener* listener) {
  ExchangeRequest request;
  for (int other = 0; other < ground.ranks(); ++other) {
    const Blocks one = {{.offset = 0, .row_bytes = 64, .rows = rows, .kept = true}};
    request.outgoing.push_back(other == ground.rank() ? Blocks() : one);
    request.incoming.push_back(request.outgoing.back());
  }
  request.listener = listener;
  return request;
}

struct ExchangingRank {
  Oob& all;
  Ground& ground;
  Exchange& exchange;
  CountingListener& listener;

  // A run of which rank 1 complains, until nothing is under way any more.
  void refuse() {
    const Complaint complaint;
    exchange.begin(ground.rank() == 1 ? &complaint : nullptr);
    while (!exchange.is_settled()) exchange.turn(true);
  }
};

std::string exchange_by(const std::vector<std::string>& channels, std::uint64_t rows,
                        const std::function<std::string(ExchangingRank rank)>& look) {
  Process process(pair_of_ranks.ranks);
  process.config().channels = channels;
  InProcessJob job(pair_of_ranks.ranks), party(pair_of_ranks.ranks);
  party.bring_messages(test_seed(), 3);
  return job.run([&](Oob& all) -> std::string {
    PostingRank posting(job, all.rank(), pair_of_ranks, test_seed());
    Result<std::unique_ptr<Ground>> ground = Ground::make(
        all, [&] { return std::make_unique<AllMembers>(party, posting.progress, all.rank(), pair_of_ranks); });
    if (!ground.ok()) return ground.status().message();
    CountingListener listener;
    Result<std::unique_ptr<Exchange>> made =
        Exchange::make((*ground)->team(), one_kept_slice(**ground, rows, &listener));
    if (!made.ok()) return made.status().message();
    return look({all, **ground, **made, listener});
  });
}

const std::vector<std::vector<std::string>> both_ways = {{"shm", "mpi"}, {"mpi"}};

TEST(Exchange, WhoComplainsHearsOfNobody) {
  for (const auto& channels : both_ways)
    EXPECT_EQ(exchange_by(channels, 1,
                          [](ExchangingRank rank) -> std::string {
                            rank.refuse();
                            if (!rank.exchange.refusal() || rank.exchange.refusal()->rank != 1)
                              return "nobody complains";
                            // Of itself rank 0 has heard before.
                            const bool silent = rank.listener.times[0] == (rank.ground.rank() == 0 ? 1 : 0);
                            return silent && rank.listener.times[1] == 0 ? "" : "it hears of a rank";
                          }),
              "");
}

TEST(Exchange, ARankThatFailsAfterARefusalIsNoticed) {
  for (const auto& channels : both_ways)
    EXPECT_EQ(exchange_by(channels, 1,
                          [](ExchangingRank rank) -> std::string {
                            rank.refuse();
                            if (Status met = rank.all.go_on_together({}); !met.ok()) return met.message();
                            if (rank.ground.rank() == 1) rank.ground.team()->give_up({Code::internal, "it is ill"});
                            if (Status met = rank.all.go_on_together({}); !met.ok()) return met.message();
                            if (rank.ground.rank() == 1) return "";
                            rank.exchange.look_for_failures();
                            return rank.exchange.conclude().ok() ? "it is not noticed" : "";
                          }),
              "");
}

TEST(Exchange, OneRankSaysThatThereIsNoRoomForInboxes) {
  constexpr std::uint64_t most = 24 << 20, rows = 32 << 14;  // bytes of a file; of 64 bytes each
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limit{most, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  testing::internal::CaptureStderr();
  const std::string wrong = exchange_by(both_ways[0], rows, [](ExchangingRank rank) {
    return rank.exchange.reach(1 - rank.ground.rank()) == Reach::messages ? "" : "there is room for inboxes";
  });
  const std::string said = testing::internal::GetCapturedStderr();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(wrong, "");
  const std::string warning = "warning: a fused plan's slices go by messages, which is slower: ";
  EXPECT_NE(said.find(warning), std::string::npos) << said;
  EXPECT_EQ(said.find(warning), said.rfind(warning)) << said;
}

}  // namespace
}  // namespace plait::fused
