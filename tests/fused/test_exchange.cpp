// What an exchange tells and whom: who listens hears of nobody once the run is refused; a rank that fails after that is
// noticed; where there is no room for inboxes, one rank says so; and where one rank has none, no rank uses any.
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

using Request = std::function<ExchangeRequest(const Ground& ground, Listener* listener)>;
using Look = std::function<std::string(ExchangingRank rank)>;

std::string exchange_among(const Shape& ranks, const std::vector<std::string>& channels, const Request& request,
                           const Look& look) {
  Process process(ranks.ranks);
  process.config().channels = channels;
  InProcessJob job(ranks.ranks), party(ranks.ranks);
  party.bring_messages(test_seed(), 3);
  return job.run([&](Oob& all) -> std::string {
    PostingRank posting(job, all.rank(), ranks, test_seed());
    Result<std::unique_ptr<Ground>> ground =
        Ground::make(all, [&] { return std::make_unique<AllMembers>(party, posting.progress, all.rank(), ranks); });
    if (!ground.ok()) return ground.status().message();
    CountingListener listener;
    Result<std::unique_ptr<Exchange>> made = Exchange::make((*ground)->team(), request(**ground, &listener));
    if (!made.ok()) return made.status().message();
    return look({all, **ground, **made, listener});
  });
}

std::string exchange_by(const std::vector<std::string>& channels, std::uint64_t rows, const Look& look) {
  return exchange_among(
      pair_of_ranks, channels,
      [rows](const Ground& ground, Listener* listener) { return one_kept_slice(ground, rows, listener); }, look);
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

// No file is longer for a while.
class ShortFiles {
 public:
  explicit ShortFiles(std::uint64_t most) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{most, before_.rlim_max};
    is_set_ = setrlimit(RLIMIT_FSIZE, &limit) == 0;
  }
  ~ShortFiles() { setrlimit(RLIMIT_FSIZE, &before_); }
  ShortFiles(const ShortFiles&) = delete;
  ShortFiles& operator=(const ShortFiles&) = delete;
  bool is_set() const { return is_set_; }

 private:
  rlimit before_{};
  bool is_set_ = false;
};

TEST(Exchange, OneRankSaysThatThereIsNoRoomForInboxes) {
  constexpr std::uint64_t most = 24 << 20, rows = 32 << 14;  // bytes of a file; of 64 bytes each
  const ShortFiles files(most);
  ASSERT_TRUE(files.is_set());
  testing::internal::CaptureStderr();
  const std::string wrong = exchange_by(both_ways[0], rows, [](ExchangingRank rank) {
    return rank.exchange.reach(1 - rank.ground.rank()) == Reach::messages ? "" : "there is room for inboxes";
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(wrong, "");
  const std::string warning = "warning: a fused plan's slices go by messages, which is slower: ";
  EXPECT_NE(said.find(warning), std::string::npos) << said;
  EXPECT_EQ(said.find(warning), said.rfind(warning)) << said;
}

// Each has a slice for each other; the last rank's are long.
ExchangeRequest much_for_the_last(const Ground& ground, std::uint64_t rows) {
  const int last = ground.ranks() - 1;
  const auto one = [&](int owner) {
    return Blocks{{.offset = 0, .row_bytes = 64, .rows = owner == last ? rows : 1, .kept = true}};
  };
  ExchangeRequest request;
  for (int other = 0; other < ground.ranks(); ++other) {
    const bool self = other == ground.rank();
    request.outgoing.push_back(self ? Blocks() : one(other));
    request.incoming.push_back(self ? Blocks() : one(ground.rank()));
  }
  return request;
}

// Each rank writes its number into the slices for the others.
std::string exchange_numbers(Exchange& exchange, int rank, int ranks) {
  exchange.begin(nullptr);
  while (!exchange.is_good()) exchange.turn(true);
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    *exchange.target(other, 0).rows = static_cast<std::byte>(rank);
    exchange.finished(other, 0);
  }
  while (!exchange.is_settled()) exchange.turn(true);
  for (int other = 0; other < ranks; ++other)
    if (other != rank && !(exchange.has_come(other, 0) && *exchange.kept(other, 0) == static_cast<std::byte>(other)))
      return "nothing has come from " + std::to_string(other);
  return "";
}

// The first two have attached each other's.
TEST(Exchange, InboxesThatOneRankLacksAreForgottenByAll) {
  constexpr std::uint64_t most = 48 << 20, rows = 32 << 14;  // bytes of a file; of 64 bytes each, from each
  const ShortFiles files(most);
  ASSERT_TRUE(files.is_set());
  EXPECT_EQ(exchange_among(
                {3, 3}, both_ways[0], [](const Ground& ground, Listener*) { return much_for_the_last(ground, rows); },
                [](ExchangingRank rank) -> std::string {
                  const int own = rank.ground.rank(), other = (own + 1) % 3;
                  if (rank.exchange.reach(other) != Reach::messages) return "there is room for inboxes";
                  if (!rank.exchange.inbox(other).empty() || rank.exchange.flags(other) != nullptr)
                    return "an inbox is left";
                  return exchange_numbers(rank.exchange, own, 3);
                }),
            "");
}

}  // namespace
}  // namespace plait::fused
