#include <gtest/gtest.h>

#include "tests/tl/ranks.h"
#include "tests/tl/traffic.h"
#include "tl/shm/ring.h"
#include "tl/shm/shm_channel.h"

namespace plait::tl {
namespace {

constexpr std::size_t kib = 1024;

struct Case {
  const char* name;
  int ranks;
  std::size_t pair_bytes;
  std::size_t element_bytes;
  std::vector<std::size_t> sizes;
  ShmChannelOptions options = {};
  int messages = 40;
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

std::vector<Case> cases() {
  const std::vector<std::size_t> small{1, 4, 52, 56, 60, 64, 100, 1000, 1532, 1536, 1540, 4096};
  const std::vector<std::size_t> large{64 * kib - 4, 64 * kib, 64 * kib + 4, 128 * kib + 4, 300'000, 1024 * kib, 8};
  const std::vector<std::size_t> mixed{4, 56, 60, 2000, 5000, 20'000, 65'536, 131'072, 300'000};
  const std::size_t generous = detail::generous_pair_bytes, least = detail::least_pair_bytes;
  const ShmChannelOptions copy_all{.single_copy = true, .single_copy_threshold = 1};
  const ShmChannelOptions copy_some{.single_copy = true, .single_copy_threshold = 65'536};
  const ShmChannelOptions built_in{.single_copy = true};
  return {
      {"small2", 2, generous, 4, small, {}, 400},
      {"small3", 3, generous, 4, small, {}, 400},
      {"large2", 2, generous, 4, large, {}},
      {"large2_odd_element", 2, generous, 12, large, {}},
      {"large3", 3, 128 * kib, 4, large, {}},
      {"huge_element", 2, generous, 4096, large, {}},
      {"barrier5", 5, 4 * kib, 0, {0}, {}, 300},
      {"mixed5", 5, 16 * kib, 4, mixed, {}},
      {"least3", 3, least, 4, {4, 56, 60, 64, 68, 128, 132, 3000}, {}, 200},
      {"least_huge_element", 2, least, 1000, {1000, 5000}, {}},
      {"small_huge_element", 2, 3 * kib, 4096, {4096, 16'384}, {}},
      {"copy_all2", 2, generous, 4, mixed, copy_all, 200},
      {"copy_all3", 3, 16 * kib, 8, mixed, copy_all, 200},
      {"copy_all_least", 3, least, 4, mixed, copy_all, 60},  // most messages have too many spans for such a slot
      {"copy_some2", 2, 64 * kib, 4, mixed, copy_some, 200},
      {"copy_some5", 5, 20 * kib, 16, mixed, copy_some, 200},
      {"built_in5", 5, 20 * kib, 4, {8, 65'536, 200'000, 1024 * kib}, built_in},
  };
}

class ShmTraffic : public testing::TestWithParam<Case> {
 protected:
  RankBody body() const {
    return [test = GetParam()](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) -> std::string {
      auto channel = make_shm_channel(std::move(segment), peers, rank, test.options);
      if (!channel.ok()) return channel.status().message();
      Engine engine(by_kind({channel->get()}), {.yield = true});
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        Traffic traffic({.seed = seed,
                         .ranks = test.ranks,
                         .messages = test.messages,
                         .element_bytes = test.element_bytes,
                         .sizes = test.sizes,
                         .most_spans = seed % 2 == 0 ? 1 : 6},
                        rank);
        if (std::string problem = traffic.run(engine); !problem.empty()) return problem;
      }
      return {};
    };
  }
};

TEST_P(ShmTraffic, BetweenProcesses) {
  EXPECT_EQ(run_processes(GetParam().ranks, segment_for(GetParam().ranks, GetParam().pair_bytes), body()), 0);
}

TEST_P(ShmTraffic, BetweenThreads) {
  EXPECT_EQ(run_threads(GetParam().ranks, segment_for(GetParam().ranks, GetParam().pair_bytes), body()), 0);
}

INSTANTIATE_TEST_SUITE_P(, ShmTraffic, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(RingShape, FitsAndIsAPowerOfTwo) {
  for (std::size_t bytes = 0; bytes < 3'000'000; bytes += bytes < 10'000 ? 64 : 4096) {
    const detail::RingShape shape = detail::ring_shape(bytes);
    if (bytes < detail::least_pair_bytes) {
      EXPECT_EQ(shape.slots, 0u) << bytes;
      continue;
    }
    EXPECT_TRUE(shape.slots >= 2 && (shape.slots & (shape.slots - 1)) == 0) << bytes;
    EXPECT_LE(shape.bytes(), bytes);
    EXPECT_EQ(shape.area_bytes % detail::cache_line, 0u);
    EXPECT_GE(shape.area_bytes, detail::cache_line);
  }
}

// Both ends in one thread, moved by hand.
class TwoEnds : public testing::Test {
 protected:
  void connect(ShmChannelOptions options, std::size_t pair_bytes, int second_process = getpid()) {
    segment_ = std::move(SharedSegment::create(segment_for(2, pair_bytes)).value());
    const std::vector<ShmPeer> peers{{3, getpid()}, {5, second_process}};
    for (int self = 0; self < 2; ++self) {
      auto channel = make_shm_channel(SharedSegment::view(segment_.data(), segment_.bytes()), peers, self, options);
      ASSERT_TRUE(channel.ok()) << channel.status().message();
      ends_[static_cast<std::size_t>(self)] = std::move(*channel);
    }
  }
  Transfer transfer(StepKind kind, int peer, const BoundSpan& span) {
    Transfer result;
    result.kind = kind;
    result.peer = peer;
    result.bytes = span.bytes;
    result.memory = {&span, 1, &buffers_};
    return result;
  }
  Channel& first() { return *ends_[0]; }
  Channel& second() { return *ends_[1]; }

  std::vector<std::byte> memory_ = std::vector<std::byte>(2'000'000);
  Buffers buffers_{{memory_.data(), memory_.data() + 1'000'000, nullptr}};
  SharedSegment segment_;
  std::array<std::unique_ptr<Channel>, 2> ends_;
  std::vector<Transfer*> completed_;
};

TEST_F(TwoEnds, RefusesStrangers) {
  connect({}, 4096);
  const BoundSpan span{0, 8, Space::input};
  for (const int peer : {-1, 0, 3, 8}) {  // 3 is this rank itself
    Transfer message = transfer(StepKind::send, peer, span);
    Result<bool> result = first().start(message);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::internal);
  }
}

TEST_F(TwoEnds, NoticesMessagesOfOtherLengths) {
  const BoundSpan hundred{0, 100, Space::input}, less{0, 60, Space::output};
  for (const bool single_copy : {false, true}) {
    connect({.single_copy = single_copy, .single_copy_threshold = 1}, 4096);
    Transfer send = transfer(StepKind::send, 5, hundred), receive = transfer(StepKind::recv, 3, less);
    ASSERT_TRUE(first().start(send).ok());
    Result<bool> result = second().start(receive);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), Code::internal);
    EXPECT_NE(result.status().message().find("rank 3"), std::string::npos) << result.status().message();
  }
}

TEST_F(TwoEnds, NamesThePeerWhoseMemoryIsGone) {
  const int gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  connect({.single_copy = true, .single_copy_threshold = 1}, 4096, gone);
  const BoundSpan source{0, 1000, Space::input}, destination{0, 1000, Space::output};
  Transfer send = transfer(StepKind::send, 3, source), receive = transfer(StepKind::recv, 5, destination);
  ASSERT_TRUE(second().start(send).ok());
  ASSERT_TRUE(first().start(receive).ok());
  const Result<bool> result = first().progress(completed_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::peer_failed);
  EXPECT_NE(result.status().message().find("rank 5 (process " + std::to_string(gone) + "): No such process"),
            std::string::npos)
      << result.status().message();
  first().abandon({Code::peer_failed, "given up"});
  EXPECT_EQ(first().active(), 0);
  EXPECT_FALSE(first().start(receive).ok()) << "the ring's state is lost";
}

TEST_F(TwoEnds, AbandonedMemoryIsNotWrittenTo) {
  connect({.single_copy = true, .single_copy_threshold = 1}, 4096);
  std::fill_n(memory_.data(), 1'000'000, std::byte{1});
  const BoundSpan source{0, 1'000'000, Space::input}, destination{0, 1'000'000, Space::output};
  Transfer send = transfer(StepKind::send, 5, source), receive = transfer(StepKind::recv, 3, destination);
  ASSERT_FALSE(*first().start(send));
  ASSERT_FALSE(*second().start(receive));
  ASSERT_TRUE(first().progress(completed_).ok());   // pushes a piece
  ASSERT_TRUE(second().progress(completed_).ok());  // pulls one
  second().abandon({Code::peer_failed, "given up"});
  const std::vector<std::byte> before(memory_.begin() + 1'000'000, memory_.end());
  EXPECT_NE(std::count(before.begin(), before.end(), std::byte{1}), 0);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(first().progress(completed_).ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), memory_.begin() + 1'000'000));
}

// A program that got its error may change the data at once, or free it.
TEST_F(TwoEnds, ChangedDataOfAFailedPeerIsNotTaken) {
  connect({.single_copy = true, .single_copy_threshold = 1}, 4096);
  const BoundSpan source{0, 1'000'000, Space::input}, destination{0, 1'000'000, Space::output};
  Transfer send = transfer(StepKind::send, 5, source), receive = transfer(StepKind::recv, 3, destination);
  ASSERT_FALSE(*first().start(send));
  ASSERT_FALSE(*second().start(receive));
  ASSERT_TRUE(second().progress(completed_).ok());  // pulls a piece
  first().abandon({Code::unavailable, "out of memory"});
  Status status;
  for (int glance = 0; glance < 100'000 && status.ok() && completed_.empty(); ++glance)
    status = second().progress(completed_).status();
  EXPECT_TRUE(completed_.empty());
  EXPECT_EQ(status.code(), Code::peer_left);
  EXPECT_NE(status.message().find("rank 3"), std::string::npos) << status.message();
}

// The single copy is shared: with alternating glances both ends copy about half.
TEST_F(TwoEnds, BothSidesCopy) {
  connect({.single_copy = true, .single_copy_threshold = 1}, 4096);
  for (std::size_t i = 0; i < 1'000'000; ++i) memory_[i] = static_cast<std::byte>(i * 7);
  const BoundSpan source{0, 1'000'000, Space::input}, destination{0, 1'000'000, Space::output};
  Transfer send = transfer(StepKind::send, 5, source), receive = transfer(StepKind::recv, 3, destination);
  ASSERT_FALSE(*first().start(send));
  ASSERT_FALSE(*second().start(receive));
  int glances = 0;
  for (; completed_.size() < 2 && glances < 100; ++glances)
    for (auto& end : ends_) {
      if (end->active() > 0) {
        ASSERT_TRUE(end->progress(completed_).ok());
      }
    }
  EXPECT_LT(glances, 8);
  EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + 1'000'000, memory_.begin() + 1'000'000));
}

TEST(ShmChannel, NamesTheLeastSegment) {
  const std::vector<ShmPeer> peers{{0, 1}, {1, 2}, {2, 3}};
  const std::size_t least = segment_for(3, detail::least_pair_bytes);
  auto too_small = make_shm_channel(std::move(SharedSegment::create(least - 64).value()), peers, 0, {});
  ASSERT_FALSE(too_small.ok());
  EXPECT_EQ(too_small.status().code(), Code::invalid);
  EXPECT_NE(too_small.status().message().find(std::to_string(least)), std::string::npos);
  EXPECT_TRUE(make_shm_channel(std::move(SharedSegment::create(least).value()), peers, 0, {}).ok());
}

TEST(ShmChannel, DefaultSegmentsAreLargeEnough) {
  for (const int ranks : {1, 2, 3, 8, 16, 64, 128, 384}) {
    const std::size_t bytes = SharedSegment::default_bytes(ranks);
    EXPECT_GE(bytes / detail::pair_count(ranks), detail::least_pair_bytes) << ranks;
    if (ranks > 128) continue;
    EXPECT_LE(bytes, (std::size_t{4} << 20) + static_cast<std::size_t>(ranks) * 64 * kib) << ranks;
  }
}

}  // namespace
}  // namespace plait::tl
