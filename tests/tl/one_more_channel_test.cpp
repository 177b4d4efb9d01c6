// What a line in core/channel_kind.h and a Channel are enough for: the planner's schedules, the engine, the report's
// names and PLAIT_CHANNELS know a channel that this test alone has. It connects two of the four ranks of a node, the
// others of which talk over the node's channel, as messages for simplicity's sake.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "plan/lower/bound_schedule.h"
#include "plan/lower/proof.h"
#include "plan/model/builder.h"
#include "tl/engine.h"
#include "tl/memory.h"

namespace plait::tl {
namespace {

constexpr int ranks = 4;

// Messages of ranks that take turns in one thread.
using Wire = std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>>;  // by sender and receiver

class WireChannel final : public Channel {
 public:
  WireChannel(ChannelKind kind, Wire& wire, int self) : kind_(kind), wire_(wire), self_(self) {}
  ChannelKind kind() const override { return kind_; }
  int active() const override { return static_cast<int>(receives_.size()); }

  Result<bool> start(Transfer& transfer) override {
    ++messages;
    if (transfer.kind != StepKind::send) {
      receives_.push_back(&transfer);
      return false;
    }
    std::vector<std::byte> message(transfer.bytes);
    copy_out(transfer.memory, 0, message.data(), message.size());
    wire_[{self_, transfer.peer}].push_back(std::move(message));
    return true;
  }

  Result<bool> progress(std::vector<Transfer*>& completed) override {
    const std::size_t before = completed.size();
    std::erase_if(receives_, [&](Transfer* transfer) {
      auto& queue = wire_[{transfer->peer, self_}];
      if (queue.empty()) return false;
      if (transfer->kind == StepKind::recv_reduce)
        reduce_in(*transfer, 0, queue.front().data(), queue.front().size());
      else
        copy_in(transfer->memory, 0, queue.front().data(), queue.front().size());
      queue.pop_front();
      completed.push_back(transfer);
      return true;
    });
    return completed.size() > before;
  }
  void abandon(const Status&) override { receives_.clear(); }

  int messages = 0;

 private:
  ChannelKind kind_;
  Wire& wire_;
  int self_;
  std::vector<Transfer*> receives_;
};

Routes routes() {
  Routes made(ChannelKind::mpi);
  made.connect(std::array{0, 0, -1, -1}, ChannelKind::fake);
  made.connect(std::array{0, 0, 0, 0}, ChannelKind::shm);
  return made;
}

// Neighbours add up, then the pairs.
Result<LoweredPlan> all_reduce() {
  Builder builder(Semantics(Collective::allreduce, ranks, 0, 1, 1), routes());
  const std::vector<BlockId> all = {0};
  for (const auto& [one, other] : {std::pair{0, 1}, {2, 3}, {0, 2}, {1, 3}}) builder.exchange(one, other, all);
  return builder.finish();
}

struct Rank {
  std::unique_ptr<WireChannel> fake, near;
  std::unique_ptr<Engine> engine;
  BoundSchedule schedule;
  std::array<std::byte, 1> input{}, output{};
  std::vector<std::byte> scratch;
  Buffers buffers;
  bool complete = false;
};

TEST(OneMoreChannel, IsKnownByItsLine) {
  EXPECT_EQ(channel_kinds, 6);
  EXPECT_EQ(name(ChannelKind::fake), "fake");
  EXPECT_EQ(channel_named("fake"), ChannelKind::fake);
  EXPECT_EQ(all_channel_names, "shm,tcp,ucx,mpi,cuda,fake");
  EXPECT_EQ(parse_channels("fake,mpi"), (std::vector<std::string>{"fake", "mpi"}));
  ASSERT_EQ(std::tuple_size_v<Channels>, 6u);
}

TEST(OneMoreChannel, ConnectsTheRanksThatItsRouteNames) {
  const Routes made = routes();
  EXPECT_EQ(made.between(0, 1), ChannelKind::fake);
  EXPECT_EQ(made.between(1, 0), ChannelKind::fake);
  EXPECT_EQ(made.between(0, 2), ChannelKind::shm);
  EXPECT_EQ(made.between(2, 3), ChannelKind::shm);
  EXPECT_EQ(made.shared_memory(), ChannelKind::shm);  // it has no shared-memory collectives itself
  EXPECT_TRUE(made.kinds().any(&ChannelTraits::device_memory));
}

TEST(OneMoreChannel, CarriesTheMessagesOfAPlan) {
  const auto plan = all_reduce();
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_TRUE(prove(plan->semantics, plan->schedules, true).ok());
  Wire fake_wire, near_wire;
  std::array<Rank, ranks> job;
  Reducer reducer;
  reducer.apply = [](const Reducer&, void* result, const void* left, const void* right, std::size_t) {
    *static_cast<unsigned char*>(result) = static_cast<unsigned char>(*static_cast<const unsigned char*>(left) +
                                                                      *static_cast<const unsigned char*>(right));
  };
  for (int rank = 0; rank < ranks; ++rank) {
    Rank& mine = job[static_cast<std::size_t>(rank)];
    mine.fake = std::make_unique<WireChannel>(ChannelKind::fake, fake_wire, rank);
    mine.near = std::make_unique<WireChannel>(ChannelKind::shm, near_wire, rank);
    mine.engine = std::make_unique<Engine>(by_kind({mine.fake.get(), mine.near.get()}), WaitPolicy{});
    mine.schedule = bind(plan->schedules[static_cast<std::size_t>(rank)], plan->semantics, rank,
                         {.element_bytes = 1, .vector_elements = 1});
    mine.input[0] = static_cast<std::byte>(1 << rank);
    mine.scratch.resize(mine.schedule.scratch_bytes);
    mine.buffers.base = {mine.input.data(), mine.output.data(), mine.scratch.data()};
    mine.complete = *mine.engine->start(mine.schedule, mine.buffers, &reducer, nullptr);
  }
  for (int turn = 0; turn < 100; ++turn)
    for (Rank& rank : job)
      if (!rank.complete) rank.complete = *rank.engine->progress();
  for (std::size_t rank = 0; rank < job.size(); ++rank) {
    EXPECT_TRUE(job[rank].complete) << rank;
    EXPECT_EQ(job[rank].output[0], std::byte{15}) << rank;
    EXPECT_EQ(job[rank].fake->messages, rank < 2 ? 2 : 0);
    EXPECT_EQ(names(job[rank].schedule.channels_used), rank < 2 ? "shm,fake" : "shm");
  }
}

}  // namespace
}  // namespace plait::tl
