// Operations that are posted, by ranks in one process: each computes, posts and waits when its seed says so.
#include "runtime/progress/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/attempt.h"
#include "runtime/progress/persistent_set_up.h"
#include "runtime/progress/persistent_space.h"
#include "tests/runtime/posting.h"

namespace plait::runtime {
namespace {

class PostsOf : public testing::TestWithParam<Shape> {
 protected:
  const std::uint64_t seed = test_seed();
  const testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
};

// Of the job: the same on all ranks.
std::size_t draw_count(std::mt19937_64& job_random) {
  constexpr std::size_t most[] = {1, 8, 300, 5000};
  return 1 + job_random() % most[job_random() % std::size(most)];
}

// Two communicators: what is posted on each comes in the same order everywhere, but ranks go to and fro between them
// as they like.
TEST_P(PostsOf, RunInTheOrderOfEachCommunicator) {
  const Shape shape = GetParam();
  const int calls = shape.ranks > 64 ? 4 : 20;
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 3);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    RankCommunicator other(rank.progress, job, oob.rank(), shape);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    if (std::string wrong = rank.connect(other); !wrong.empty()) return wrong;
    Communicator* communicators[] = {&rank.communicator, &other};
    std::mt19937_64 job_random[] = {std::mt19937_64(seed), std::mt19937_64(seed + 1)};
    int left[] = {calls, calls};
    std::vector<std::unique_ptr<PostedOperation>> posted;
    std::vector<std::uint64_t> salts;
    while (left[0] + left[1] > 0) {
      const std::size_t one = left[0] > 0 && (left[1] == 0 || rank.random() % 2 == 0) ? 0 : 1;
      --left[one];
      const std::size_t count = draw_count(job_random[one]);
      salts.push_back(job_random[one]() % 1000);
      const Layout& layout = rank.random() % 3 == 0 ? sparse_layout() : dense_layout();
      posted.push_back(rank.prepare_sum(*communicators[one], count, salts.back(), layout));
      rank.post(*posted.back());
      rank.compute();
    }
    std::vector<std::size_t> order(posted.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, rank.random);
    for (const std::size_t i : order) {
      if (rank.wait_for(*posted[i]) != 0) return "failed";
      if (std::string wrong = wrong_sum(*posted[i], shape.ranks, salts[i]); !wrong.empty()) return wrong;
    }
    rank.progress.progress();
    if (!std::ranges::all_of(posted, [](const auto& one) { return one->told; })) return "a request was not told";
    return rank.progress.anything_posted() ? "something is left" : "";
  }),
            "");
}

class DrainsOf : public PostsOf {};  // up to as many ranks as plans are made for

// A blocking call comes after what was posted before it.
TEST_P(DrainsOf, EndWithAllThatWasPosted) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 3);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    std::vector<std::unique_ptr<PostedOperation>> posted;
    for (std::uint64_t salt = 0; salt < 5; ++salt) {
      posted.push_back(rank.prepare_sum(rank.communicator, 100, salt, dense_layout()));
      rank.post(*posted.back());
    }
    rank.progress.drain(rank.communicator);
    for (std::uint64_t salt = 0; salt < 5; ++salt)
      if (std::string wrong = wrong_sum(*posted[salt], shape.ranks, salt); !wrong.empty()) return wrong;
    rank.progress.retire(rank.communicator);
    return {};
  }),
            "");
}

class PairsOf : public PostsOf {};
class StartsOf : public PostsOf {};

// A number for each pair, and for some of them more than a slot holds; none for the pairs of a third.
std::size_t pair_count(int from, int to) {
  const int kind = (from + 2 * to) % 3;
  return kind == 0 ? 0 : kind == 1 ? 1 + static_cast<std::size_t>(to) : 600;
}

TEST_P(PairsOf, ExchangeWhatOnlyTheyKnow) {
  const Shape shape = GetParam();
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    const int own = oob.rank();
    PostingRank rank(job, own, shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    const Layout& layout = own % 2 == 0 ? dense_layout() : sparse_layout();
    const std::size_t stride = own % 2 == 0 ? 1 : 2;
    std::vector<std::vector<std::uint64_t>> out, in;
    PostedOperation operation;
    operation.communicator = &rank.communicator;
    operation.request.lists = &operation.kept;
    operation.request.call.collective = Collective::alltoallv;
    const auto piece = [&](std::vector<std::uint64_t>& data, std::size_t count) {
      return Piece{.address = reinterpret_cast<std::byte*>(data.data()),
                   .count = count,
                   .type = &layout,
                   .bytes = count * sizeof(std::uint64_t)};
    };
    for (int other = 0; other < shape.ranks; ++other) {
      out.emplace_back(pair_count(own, other) * stride, static_cast<std::uint64_t>(own * 1000 + other));
      in.emplace_back(pair_count(other, own) * stride, 0);
    }
    for (int other = 0; other < shape.ranks; ++other) {
      const auto i = static_cast<std::size_t>(other);
      operation.kept.sends.push_back(piece(out[i], pair_count(own, other)));
      operation.kept.receives.push_back(piece(in[i], pair_count(other, own)));
    }
    const Call first{.collective = Collective::alltoall, .root = 0, .count = slot_bytes(usual_slot_class)};
    operation.prepared = rank.communicator.team->schedules.hold({.call = first, .candidate = planners_candidate});
    rank.post(operation);
    rank.compute();
    if (rank.wait_for(operation) != 0) return "failed";
    for (int other = 0; other < shape.ranks; ++other)
      for (std::size_t i = 0; i < pair_count(other, own); ++i)
        if (in[static_cast<std::size_t>(other)][i * stride] != static_cast<std::uint64_t>(other * 1000 + own))
          return "number " + std::to_string(i) + " of rank " + std::to_string(other) + " is wrong";
    return {};
  }),
            "");
}

// Of equal messages, that are there when they are posted and as long as their ranks say in this call.
class EqualExchange {
 public:
  EqualExchange(Communicator& communicator, std::size_t count, std::uint64_t salt)
      : rank_(communicator.rank), salt_(salt) {
    operation.communicator = &communicator;
    operation.request.lists = &operation.kept;
    operation.request.call.collective = Collective::alltoallv;
    for (int other = 0; other < communicator.ranks; ++other) {
      out_.emplace_back(count, value(rank_, other));
      in_.emplace_back(count, 0);
    }
    for (std::size_t other = 0; other < in_.size(); ++other) {
      operation.kept.sends.push_back(piece(out_[other]));
      operation.kept.receives.push_back(piece(in_[other]));
    }
    const Call first{.collective = Collective::alltoall, .root = 0, .count = slot_bytes(usual_slot_class)};
    operation.prepared = communicator.team->schedules.hold({.call = first, .candidate = planners_candidate});
  }

  bool right() const {
    for (int other = 0; other < static_cast<int>(in_.size()); ++other)
      if (other != rank_ && std::ranges::count(in_[static_cast<std::size_t>(other)], value(other, rank_)) !=
                                std::ssize(in_[static_cast<std::size_t>(other)]))
        return false;
    return true;
  }

  // To be posted once more.
  void rewind() {
    operation.execution = {};
    operation.running = operation.told = false;
    operation.complete.store(false);
    for (std::vector<std::uint64_t>& data : in_) std::ranges::fill(data, 0);
  }

  PostedOperation operation;

 private:
  static Piece piece(std::vector<std::uint64_t>& data) {
    return {.address = reinterpret_cast<std::byte*>(data.data()),
            .count = data.size(),
            .type = &dense_layout(),
            .bytes = data.size() * sizeof(std::uint64_t)};
  }
  std::uint64_t value(int from, int to) const { return static_cast<std::uint64_t>(from * 1000 + to) << 16 | salt_; }

  int rank_;
  std::uint64_t salt_;
  std::vector<std::vector<std::uint64_t>> out_, in_;
};

// Ranks post ahead of each other and look at what is complete when they like, so that they know of different calls what
// was wished in them: slots must be as long on all ranks all the same, and grow to what the messages have.
TEST_P(PairsOf, TakeLongerSlotsForLongerMessages) {
  const Shape shape = GetParam();
  const std::size_t bytes = slot_bytes(usual_slot_class + 2, shape.ranks) - slot_header_bytes;
  ASSERT_GT(bytes, slot_bytes(usual_slot_class)) << "so many ranks have no longer slots";
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    std::vector<std::unique_ptr<EqualExchange>> exchanges;
    for (std::uint64_t salt = 0; salt < 12; ++salt) {
      const std::size_t count = salt < 8 ? bytes / sizeof(std::uint64_t) : 3;  // until the last few are short again
      exchanges.push_back(std::make_unique<EqualExchange>(rank.communicator, count, salt));
      rank.post(exchanges.back()->operation);
      if (rank.random() % 2 == 0) rank.compute();
      if (salt == 7 && rank.wait_for(exchanges.back()->operation) != 0) return "failed";
      if (const SlotSize* size = rank.communicator.team->posted_slots.of(Collective::alltoallv);
          salt == 7 && size->bytes() != slot_bytes(usual_slot_class + 2, shape.ranks))
        return "slots have " + std::to_string(size->bytes()) + " bytes";
    }
    for (auto& exchange : exchanges)
      if (rank.wait_for(exchange->operation) != 0) return "failed";
    if (!std::ranges::all_of(exchanges, [](const auto& one) { return one->right(); })) return "wrong numbers";
    EqualExchange& again = *exchanges[7];
    if (again.operation.prepared->payload <= exchanges[0]->operation.prepared->payload)
      return "its slots were not longer";
    for (int post = 0; post < 8; ++post) {  // with slots as usual now; and with longer ones when they have grown again
      again.rewind();
      rank.post(again.operation);
      if (rank.wait_for(again.operation) != 0) return "failed when posted again";
      if (!again.right()) return "wrong numbers when posted again";
    }
    return "";
  }),
            "");
}

// Persistent ones, which each rank starts in an order of its own, again and again.
TEST_P(StartsOf, ComeInAnyOrder) {
  const Shape shape = GetParam();
  constexpr std::size_t operations = 4;
  constexpr int rounds = 5;
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 2);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    auto space =
        std::make_shared<PersistentSpace>(std::make_unique<RankCommunicator>(rank.progress, job, oob.rank(), shape));
    space->open(connect_space(space->communicator()));
    if (space->communicator().road != Road::accelerated) return space->communicator().host_reason;
    rank.progress.add_space(*space);
    std::vector<std::unique_ptr<PostedOperation>> made;
    for (std::size_t i = 0; i < operations; ++i) {
      made.push_back(rank.prepare_sum(space->communicator(), 50 * (i + 1), i, dense_layout()));
      made.back()->space = space;
      const auto slot = space->take_slot(made.back().get(), true);
      if (!slot) return "got no slot";
      made.back()->slot = *slot;
    }
    std::string wrong;
    for (int round = 0; round < rounds && wrong.empty(); ++round) {
      std::vector<std::size_t> order = {0, 1, 2, 3};
      std::ranges::shuffle(order, rank.random);
      for (const std::size_t i : order) {
        PostedOperation& operation = *made[i];
        operation.execution.at_rest = operation.running = false;
        operation.complete.store(false);
        rank.progress.hand_over_start(operation);
        rank.compute();
      }
      for (const std::size_t i : order) {
        if (rank.wait_for(*made[i]) != 0) wrong = "failed";
        if (wrong.empty()) wrong = wrong_sum(*made[i], shape.ranks, i);
      }
    }
    rank.progress.remove_space(*space);
    return wrong;
  }),
            "");
}

// A rank that fails in the midst of what all have posted: all others' operations end, sooner or later with an error.
TEST_P(PostsOf, EndWhereARankFails) {
  const Shape shape = GetParam();
  const int calls = 6;
  Process process(shape.ranks);
  InProcessJob job(shape.ranks);
  job.bring_messages(seed, 3);
  std::mt19937_64 job_random(seed);
  const int failing = static_cast<int>(job_random() % static_cast<std::uint64_t>(shape.ranks));
  const int last = static_cast<int>(job_random() % calls);
  EXPECT_EQ(job.run([&](Oob& oob) -> std::string {
    PostingRank rank(job, oob.rank(), shape, seed);
    if (std::string wrong = rank.connect(rank.communicator); !wrong.empty()) return wrong;
    std::vector<std::unique_ptr<PostedOperation>> posted;
    for (int call = 0; call < calls && (oob.rank() != failing || call < last); ++call) {
      posted.push_back(rank.prepare_sum(rank.communicator, 200, 3, dense_layout()));
      rank.post(*posted.back());
      rank.compute();
    }
    if (oob.rank() == failing) {
      rank.progress.leave_out(rank.communicator, 5);
      job.network().cut_off(failing);
    }
    bool any_failed = false;
    for (const auto& operation : posted) {
      const int error = rank.wait_for(*operation);
      if (any_failed && error == 0) return "went on after a failure";
      any_failed = any_failed || error != 0;
      if (error != 0) continue;
      if (std::string wrong = wrong_sum(*operation, shape.ranks, 3); !wrong.empty()) return wrong;
    }
    if (oob.rank() != failing && !any_failed) return "heard of no failure";
    return {};
  }),
            "");
}

const auto few_post = testing::Values(Shape{2, 1}, Shape{2, 2}, Shape{3, 2}, Shape{8, 2}, Shape{17, 5});
const auto many_post = testing::Values(Shape{64, 8}, Shape{128, 16});

INSTANTIATE_TEST_SUITE_P(Few, PostsOf, few_post, name_of);
INSTANTIATE_TEST_SUITE_P(Many, PostsOf, many_post, name_of);
INSTANTIATE_TEST_SUITE_P(Few, DrainsOf, few_post, name_of);
INSTANTIATE_TEST_SUITE_P(Many, DrainsOf, testing::Values(Shape{64, 8}, Shape{256, 32}), name_of);
INSTANTIATE_TEST_SUITE_P(Few, PairsOf, few_post, name_of);
INSTANTIATE_TEST_SUITE_P(Many, PairsOf, testing::Values(Shape{64, 8}), name_of);  // a message for each pair
INSTANTIATE_TEST_SUITE_P(Few, StartsOf, few_post, name_of);
INSTANTIATE_TEST_SUITE_P(Many, StartsOf, many_post, name_of);

}  // namespace
}  // namespace plait::runtime
