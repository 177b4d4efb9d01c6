// What a line in core/channel_kind.h and one in runtime/team/connectors.cpp are enough for: a communicator's set-up
// connects its ranks by a channel that this test alone has, and their collectives go over it. Where a rank cannot, all
// go on without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/reduction.h"
#include "runtime/job/job.h"
#include "runtime/team/set_up.h"
#include "tests/runtime/in_process_oob.h"
#include "tests/runtime/memory_network.h"
#include "tests/runtime/process.h"
#include "tl/connector.h"

namespace plait::runtime {
namespace {

// ---- The channels ----

// The networks that leaders have made, by the number that they offer: no rank finds one without the others' offers.
class Networks {
 public:
  std::uint64_t make(int ranks) {
    const std::scoped_lock lock(guard_);
    const std::uint64_t number = ++last_;
    made_.emplace(number, std::make_unique<MemoryNetwork>(ranks, number, 3));
    return number;
  }
  MemoryNetwork* find(std::uint64_t number) {
    const std::scoped_lock lock(guard_);
    const auto found = made_.find(number);
    return found != made_.end() ? found->second.get() : nullptr;
  }
  std::uint64_t messages() {
    const std::scoped_lock lock(guard_);
    std::uint64_t sum = 0;
    for (const auto& [number, network] : made_) sum += network->messages();
    return sum;
  }
  void clear() {
    const std::scoped_lock lock(guard_);
    made_.clear();
  }

 private:
  std::mutex guard_;
  std::map<std::uint64_t, std::unique_ptr<MemoryNetwork>> made_;
  std::uint64_t last_ = 0;
};
Networks networks;

// What befalls which rank, and which channels: ether works always.
enum class Mishap { none, no_offer, offer_throws, open_fails, open_throws };
struct Behaviour {
  bool registered = true;
  Mishap mishap = Mishap::none;
  int unlucky = 0;
  bool pairs_only = false;  // of a node's ranks two each are linked, one after the other
  bool breaks = false;      // at the first message
};
Behaviour behaviour;

struct Address {
  std::uint64_t network;  // of the rank's group, where this rank leads it
  std::uint64_t token;
  std::int32_t rank;
};

// Fails at its first message.
class BrokenChannel final : public Channel {
 public:
  explicit BrokenChannel(ChannelKind kind) : kind_(kind) {}
  ChannelKind kind() const override { return kind_; }
  int active() const override { return 0; }
  Result<bool> start(Transfer&) override { return Status(Code::unavailable, "it is broken"); }
  Result<bool> progress(std::vector<Transfer*>&) override { return false; }
  void abandon(const Status&) override {}

 private:
  ChannelKind kind_;
};

class MemoryConnector final : public Connector {
 public:
  explicit MemoryConnector(ChannelKind kind) : kind_(kind) {}
  ChannelKind kind() const override { return kind_; }
  std::optional<std::vector<int>> groups(const Surroundings& around) const override {
    std::vector<int> groups = usual_groups(kind_, around.hierarchy);
    if (kind_ != ChannelKind::link || !behaviour.pairs_only) return groups;
    std::map<int, int> members;
    for (int& group : groups) group = group * around.hierarchy.ranks() + members[group]++ / 2;
    return groups;
  }
  std::size_t offer_bytes() const override { return sizeof(Address); }

  Status offer(const Surroundings& around, std::span<std::byte> mine) override {
    if (befalls(Mishap::no_offer, around)) return {Code::unavailable, "it has no plug"};
    if (befalls(Mishap::offer_throws, around)) throw std::bad_alloc();
    const Address address{leader(around) == around.rank ? networks.make(around.hierarchy.ranks()) : 0, around.token,
                          around.rank};
    std::memcpy(mine.data(), &address, sizeof address);
    return {};
  }

  Result<std::unique_ptr<Channel>> open(const Surroundings& around, std::span<const std::byte> offers) override {
    if (befalls(Mishap::open_fails, around)) return Status(Code::unavailable, "its plug does not fit");
    if (befalls(Mishap::open_throws, around)) throw std::bad_alloc();
    const std::vector<Address> addresses = offers_as<Address>(offers);
    if (addresses.size() != around.locations.size()) return Status(Code::internal, "offers are missing");
    for (std::size_t rank = 0; rank < addresses.size(); ++rank)
      if (addresses[rank].rank != static_cast<int>(rank) || addresses[rank].token != around.token)
        return Status(Code::internal, "offers are not those of the ranks");
    MemoryNetwork* network = networks.find(addresses[static_cast<std::size_t>(leader(around))].network);
    if (network == nullptr) return Status(Code::internal, "its leader has no network");
    return behaviour.breaks && kind_ != ChannelKind::ether
               ? std::unique_ptr<Channel>(std::make_unique<BrokenChannel>(kind_))
               : network->channel(around.rank, around.token, kind_);
  }

 private:
  bool befalls(Mishap mishap, const Surroundings& around) const {
    return kind_ != ChannelKind::ether && behaviour.mishap == mishap && around.rank == behaviour.unlucky;
  }
  // The first of its group.
  int leader(const Surroundings& around) const {
    const std::vector<int> group = *groups(around);
    return static_cast<int>(std::ranges::find(group, group[static_cast<std::size_t>(around.rank)]) - group.begin());
  }

  ChannelKind kind_;
};

}  // namespace

std::unique_ptr<Connector> make_link_connector(Oob&) {
  return behaviour.registered ? std::make_unique<MemoryConnector>(ChannelKind::link) : nullptr;
}
std::unique_ptr<Connector> make_fabric_connector(Oob&) {
  return behaviour.registered ? std::make_unique<MemoryConnector>(ChannelKind::fabric) : nullptr;
}
std::unique_ptr<Connector> make_ether_connector(Oob&) { return std::make_unique<MemoryConnector>(ChannelKind::ether); }

namespace {

// ---- Ranks that are set up, and add ----

std::string sum_ranks(Team& team, int rank, int ranks) {
  static const Reducer sum = make_reducer(Op::sum, Element::u64);
  constexpr std::size_t count = 1000;
  const PreparedCall& prepared = team.schedules.find({.call = {.collective = Collective::allreduce,
                                                               .root = 0,
                                                               .count = team.short_calls_only ? 8 : count,
                                                               .element_bytes = sizeof(std::uint64_t),
                                                               .commutative = true},
                                                      .candidate = planners_candidate});
  if (!prepared.accelerated) return std::string("not planned: ") + prepared.reason;
  std::vector<std::uint64_t> mine(count), all(count);
  std::iota(mine.begin(), mine.end(), static_cast<std::uint64_t>(rank));
  std::vector<std::byte> scratch(prepared.schedule.scratch_bytes);
  Buffers buffers;
  buffers.base = {reinterpret_cast<std::byte*>(mine.data()), reinterpret_cast<std::byte*>(all.data()), scratch.data()};
  if (Status status = team.engine.run(prepared.schedule, buffers, &sum, nullptr); !status.ok()) return status.message();
  const auto n = static_cast<std::uint64_t>(ranks);
  for (std::size_t i = 0; i < (team.short_calls_only ? 8 : count); ++i)
    if (all[i] != n * (n - 1) / 2 + n * i) return "element " + std::to_string(i) + " is " + std::to_string(all[i]);
  return {};
}

constexpr const char* no_channel = "rank 0: PLAIT_CHANNELS names no channel between the ranks";

class MoreChannels : public testing::Test {
 protected:
  using Look = std::function<std::string(Team& team, int rank)>;

  MoreChannels() { behaviour = {}; }
  ~MoreChannels() override {
    set_verbosity(Verbosity::warnings);
    networks.clear();
  }

  // Why a rank is not satisfied, or nothing.
  std::string connect(const std::string& channels, Shape shape, const Look& look = {},
                      TeamExtent extent = TeamExtent::all_calls) {
    Process process(shape.ranks);
    process.config().channels = parse_channels(channels);
    InProcessJob job(shape.ranks);
    if (channels.find("mpi") != std::string::npos) job.bring_messages(test_seed(), 3);
    testing::internal::CaptureStderr();
    std::string wrong = job.run([&](Oob& oob) -> std::string {
      const int rank = oob.rank();
      TeamRequest request = request_of(rank, shape, extent);
      if (on_switches) request.location->leaf_switch = request.location->host.low % 2 + 1;
      auto team = set_up(std::move(request), job.oob(rank), nullptr);
      if (!team.ok()) return team.status().message();
      if (std::string sums = sum_ranks(**team, rank, shape.ranks); !sums.empty()) return sums;
      return look ? look(**team, rank) : "";
    });
    said = testing::internal::GetCapturedStderr();
    steps = job.steps();
    return wrong;
  }

  int set_ups_that_fail(const std::string& channels, Shape shape, TeamExtent extent) {
    Process process(shape.ranks);
    process.config().channels = parse_channels(channels);
    InProcessJob job(shape.ranks);
    std::atomic<int> failed = 0;
    job.run([&](Oob& oob) -> std::string {
      const auto team = set_up(request_of(oob.rank(), shape, extent), job.oob(oob.rank()), nullptr);
      failed += !team.ok() && team.status().code() == Code::unavailable;
      return {};
    });
    return failed;
  }

  bool on_switches = false;  // two, with every other node
  std::string said;
  int steps = 0;  // that all ranks took together
};

std::string between(const Team& team, int a, int b) { return std::string(name(team.routes().between(a, b))); }

std::function<std::string(Team&, int)> only_over(const char* channels) {
  return [channels](Team& team, int) -> std::string {
    const std::string found = names(team.routes().kinds());
    return found == channels ? "" : "over " + found;
  };
}

TEST_F(MoreChannels, OneCarriesTheCollectivesOfANode) {
  EXPECT_EQ(connect("link", {4, 4}, only_over("link")), "");
  EXPECT_GT(networks.messages(), 0u);
}

TEST_F(MoreChannels, OneCarriesThoseBetweenNodes) {
  EXPECT_EQ(connect("fabric,ether", {6, 2}, only_over("fabric")), "");
  EXPECT_GT(networks.messages(), 0u);
}

TEST_F(MoreChannels, EachServesItsRanks) {
  for (const TeamExtent extent : {TeamExtent::all_calls, TeamExtent::short_calls})
    EXPECT_EQ(connect(
                  "ether,fabric,link", {7, 3},
                  [&](Team& team, int) -> std::string {
                    if (team.short_calls_only != (extent == TeamExtent::short_calls)) return "another extent";
                    if (between(team, 0, 2) != "link") return "ranks 0 and 2 over " + between(team, 0, 2);
                    if (between(team, 2, 3) != "fabric") return "ranks 2 and 3 over " + between(team, 2, 3);
                    return only_over("link,fabric")(team, 0);
                  },
                  extent),
              "");
}

TEST_F(MoreChannels, OneMayConnectSomeRanksOfANode) {
  behaviour.pairs_only = true;
  EXPECT_EQ(connect("link,ether", {7, 5},
                    [](Team& team, int) -> std::string {
                      std::string found;
                      for (int rank = 1; rank < 7; ++rank) found += between(team, rank - 1, rank) + " ";
                      return found == "link ether link ether ether link " ? "" : found;
                    }),
            "");
  EXPECT_EQ(connect("link", {4, 4}), no_channel);
}

TEST_F(MoreChannels, TheHostsMessagesWhichAreNearerInTheListLeaveNothingToThem) {
  EXPECT_EQ(connect("link,ether,mpi", {6, 2}, only_over("mpi")), "");
  EXPECT_EQ(networks.messages(), 0u);
}

// ---- Where one does not work ----

TEST_F(MoreChannels, WithoutTheirLinesThereAreNone) {
  behaviour.registered = false;
  EXPECT_EQ(connect("link", {4, 4}), no_channel);
  EXPECT_EQ(connect("fabric", {6, 2}), no_channel);
  EXPECT_EQ(connect("link,fabric,ether", {6, 2}, only_over("ether")), "");
}

// Rates between switches are not known to the process from elsewhere: they are measured.
TEST_F(MoreChannels, OneThatBreaksWhileItsRateIsMeasuredIsLeftOut) {
  on_switches = true;
  behaviour.breaks = true;
  EXPECT_EQ(connect("fabric", {8, 2}), "rank 0: the network's rate cannot be measured");
  EXPECT_EQ(connect("fabric,ether", {8, 2}, only_over("ether")), "");
}

class Mishaps : public MoreChannels, public testing::WithParamInterface<Mishap> {};

TEST_P(Mishaps, OfOneRankLeadAllToTheNextChannel) {
  behaviour.mishap = GetParam();
  set_verbosity(Verbosity::debug);
  for (const int rank : {0, 5}) {
    behaviour.unlucky = rank;
    EXPECT_EQ(connect("link,fabric,ether", {6, 2}, only_over("ether")), "");
    EXPECT_NE(said.find("set-up: link does not connect all ranks that it should: left out"), std::string::npos) << said;
    EXPECT_NE(said.find("set-up: fabric does not connect"), std::string::npos) << said;
  }
}

TEST_P(Mishaps, WhereThereIsNoNextFailTheSetUpOnAllRanks) {
  behaviour.mishap = GetParam();
  behaviour.unlucky = 2;
  for (const TeamExtent extent : {TeamExtent::all_calls, TeamExtent::short_calls})
    EXPECT_EQ(set_ups_that_fail("link", {4, 4}, extent), 4);
}

std::string name_of(const testing::TestParamInfo<Mishap>& mishap) {
  static const std::map<Mishap, std::string> names = {{Mishap::no_offer, "NoOffer"},
                                                      {Mishap::offer_throws, "OfferThrows"},
                                                      {Mishap::open_fails, "OpenFails"},
                                                      {Mishap::open_throws, "OpenThrows"}};
  return names.at(mishap.param);
}

INSTANTIATE_TEST_SUITE_P(OfAConnector, Mishaps,
                         testing::Values(Mishap::no_offer, Mishap::offer_throws, Mishap::open_fails,
                                         Mishap::open_throws),
                         name_of);

// ---- What it costs ----

TEST_F(MoreChannels, OnlyThoseThatAreTriedTakeStepsTogether) {
  const Shape shape{4, 4};
  ASSERT_EQ(connect("mpi", shape), "");
  const int without = steps;
  ASSERT_EQ(connect("mpi,fabric,link", shape, only_over("mpi")), "");
  EXPECT_EQ(steps, without);
  ASSERT_EQ(connect("ether", shape, only_over("ether")), "");
  EXPECT_EQ(steps, without + 2);  // an exchange and an agreement
  ASSERT_EQ(connect("ether,fabric,link", shape, only_over("link")), "");
  EXPECT_EQ(steps, without + 2);  // what it connects needs no other
  behaviour.mishap = Mishap::no_offer;
  ASSERT_EQ(connect("ether,link", shape, only_over("ether")), "");
  EXPECT_EQ(steps, without + 1 + 2);  // without all offers there is nothing to agree on
}

}  // namespace
}  // namespace plait::runtime
