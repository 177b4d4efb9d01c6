#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "core/reduction.h"
#include "tests/tl/ranks.h"
#include "tl/shm/copy_probe.h"
#include "tl/shm/xpmem_buffers.h"

namespace plait::tl {
namespace {

constexpr const char* some_device = "/dev/null";

class Xpmem : public testing::Test {
 protected:
  void SetUp() override {
    handle_ = dlopen(FAKE_XPMEM, RTLD_NOW);
    ASSERT_NE(handle_, nullptr) << dlerror();
    const auto loaded = load_xpmem(FAKE_XPMEM, some_device);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    library_ = *loaded;
    counter("fake_xpmem_refuses") = counter("fake_xpmem_calls") = 0;
  }
  std::atomic<int>& counter(const char* name) { return *static_cast<std::atomic<int>*>(dlsym(handle_, name)); }
  std::unique_ptr<XpmemBuffers> connect(std::size_t self = 0) {
    const std::vector<std::int64_t> segments{7, 7};
    return std::move(XpmemBuffers::connect(library_, segments, self).value());
  }

  void* handle_ = nullptr;
  XpmemLibrary library_;
};

TEST_F(Xpmem, IsUnavailableWithoutDeviceOrLibrary) {
  const auto message = [](const char* library, const char* device) {
    const auto loaded = load_xpmem(library, device);
    EXPECT_FALSE(loaded.ok());
    return loaded.ok() ? "" : loaded.status().message();
  };
  EXPECT_NE(message(FAKE_XPMEM, "/dev/no-such-device").find("/dev/no-such-device"), std::string::npos);
  EXPECT_NE(message("libno-such.so.0", some_device).find("libno-such.so.0"), std::string::npos);
  EXPECT_NE(message("libm.so.6", some_device).find("lacks a function"), std::string::npos);
}

TEST_F(Xpmem, RefusedAccessIsAStatus) {
  counter("fake_xpmem_refuses") = 1;
  const auto made = XpmemBuffers::connect(library_, std::vector<std::int64_t>{7, 7}, 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::unavailable);
  EXPECT_EQ(counter("fake_xpmem_accesses"), 0);
}

TEST_F(Xpmem, AttachesOnceAndKeepsFewWindows) {
  {
    const auto buffers = connect();
    std::vector<std::byte> memory(1000);
    const std::uint64_t name = buffers->name(memory.data(), memory.size()).value();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(buffers->find(1, name + 10, 990), memory.data() + 10);
    EXPECT_EQ(counter("fake_xpmem_calls"), 1);
    for (std::uint64_t far = 1; far <= 100; ++far) {
      std::byte* found = buffers->find(1, far * XpmemBuffers::window_bytes + 5, 10);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found), far * XpmemBuffers::window_bytes + 5);
    }
    EXPECT_EQ(counter("fake_xpmem_attachments"), static_cast<int>(XpmemBuffers::most_windows));
    EXPECT_NE(buffers->find(1, 3 * XpmemBuffers::window_bytes - 5, 10), nullptr) << "across windows";
    EXPECT_EQ(buffers->find(0, name, 10), nullptr) << "this rank itself";
  }
  EXPECT_EQ(counter("fake_xpmem_attachments"), 0);
  EXPECT_EQ(counter("fake_xpmem_accesses"), 0);
}

TEST_F(Xpmem, SmallBuffersHaveNoName) {
  const auto buffers = connect();
  buffers->set_least_bytes(1000);
  std::vector<std::byte> memory(1000);
  EXPECT_FALSE(buffers->name(memory.data(), 999).has_value());
  EXPECT_TRUE(buffers->name(memory.data(), 1000).has_value());
}

// Of one buffer only: what the shared heap knows.
class OneBuffer final : public PeerBuffers {
 public:
  explicit OneBuffer(std::byte* address) : address_(address) {}
  std::optional<std::uint64_t> name(const std::byte* address, std::size_t) const override {
    return address == address_ ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
  std::byte* find(std::size_t, std::uint64_t name, std::size_t) const override { return address_ + name; }

 private:
  std::byte* address_;
};

TEST_F(Xpmem, SharedHeapsComeFirst) {
  std::vector<std::byte> shared(100), unshared(100);
  const auto joined = join_buffers(std::make_unique<OneBuffer>(shared.data()), connect());
  EXPECT_EQ(joined->find(1, joined->name(shared.data(), 100).value() + 3, 5), shared.data() + 3);
  EXPECT_EQ(counter("fake_xpmem_calls"), 0);
  EXPECT_EQ(joined->find(1, joined->name(unshared.data(), 100).value() + 3, 5), unshared.data() + 3);
  EXPECT_EQ(counter("fake_xpmem_calls"), 1);
}

constexpr std::size_t words = 100'000;

// One all-reduce of private vectors by two ranks. Returns the Status of this rank's part.
Status all_reduce(Channel& channel, int rank, std::vector<std::int32_t>& from, std::vector<std::int32_t>& to) {
  BoundShmCollective collective{.kind = ShmCollectiveKind::all_reduce,
                                .takes_own = true,
                                .root = 0,
                                .self = rank,
                                .members = {0, 1},
                                .bytes = words * 4,
                                .piece_offsets = {}};
  const Buffers buffers{{reinterpret_cast<std::byte*>(from.data()), reinterpret_cast<std::byte*>(to.data()), nullptr}};
  const BoundSpan source{0, words * 4, Space::input}, destination{0, words * 4, Space::output};
  const Reducer reducer = make_reducer(Op::sum, Element::i32);
  Transfer transfer;
  transfer.kind = StepKind::shm_collective;
  transfer.bytes = words * 4;
  transfer.element_bytes = 4;
  transfer.memory = {&destination, 1, &buffers};
  transfer.operand = {&source, 1, &buffers};
  transfer.reducer = &reducer;
  transfer.collective = &collective;
  const Result<bool> started = channel.start(transfer);
  if (!started.ok() || *started) return started.status();
  std::vector<Transfer*> completed;
  while (completed.empty()) {
    const Result<bool> moved = channel.progress(completed);
    if (!moved.ok()) return moved.status();
    if (!*moved) sched_yield();
  }
  return {};
}

TEST_F(Xpmem, StepsBetweenPrivateBuffersAreDirect) {
  ShmCollectiveWays ways;
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) -> std::string {
    const auto joined = join_buffers(nullptr, connect(static_cast<std::size_t>(rank)));
    auto channel = make_shm_channel(std::move(segment), peers, rank, {.buffers = joined.get(), .ways = &ways});
    if (!channel.ok()) return channel.status().message();
    std::vector<std::int32_t> from(words), to(words);
    std::iota(from.begin(), from.end(), rank);
    const Status status = all_reduce(**channel, rank, from, to);
    for (std::size_t i = 0; i < words; ++i)
      if (to[i] != 2 * static_cast<std::int32_t>(i) + 1) return "word " + std::to_string(i) + " is wrong";
    return status.message();
  };
  EXPECT_EQ(run_threads(2, segment_for(2, 128 * 1024), body), 0);
  EXPECT_EQ(ways.directly, 2u);
  EXPECT_EQ(ways.in_stages, 0u);
}

TEST_F(Xpmem, ARefusedAttachmentFailsTheStepAndNamesTheRank) {
  counter("fake_xpmem_refuses") = 2;
  std::atomic<int> tried{0};
  const auto body = [&](int rank, SharedSegment segment, const std::vector<ShmPeer>& peers) -> std::string {
    const auto joined = join_buffers(nullptr, connect(static_cast<std::size_t>(rank)));
    auto channel = make_shm_channel(std::move(segment), peers, rank, {.buffers = joined.get()});
    if (!channel.ok()) return channel.status().message();
    std::vector<std::int32_t> from(words), to(words);
    const Status status = all_reduce(**channel, rank, from, to);
    // The one that gives up first would tell the other, which then need not try itself.
    for (++tried; tried < 2;) sched_yield();
    (*channel)->abandon({Code::peer_failed, "given up"});
    const std::string expected = "a buffer of rank " + std::to_string(1 - rank) + " cannot be mapped";
    return status.message().find(expected) != std::string::npos ? "" : "said: " + status.message();
  };
  EXPECT_EQ(run_threads(2, segment_for(2, 128 * 1024), body), 0);
}

TEST(CopyProbe, TakesAWayOnlyFromWhereItStaysFaster) {
  const CopyCosts slow{4, 8, 16, 64};
  EXPECT_EQ(faster_from({1, 2, 4, 16}, slow, 1.25), probed_bytes[0]);
  EXPECT_EQ(faster_from({9, 9, 9, 16}, slow, 1.25), probed_bytes[2]);
  EXPECT_EQ(faster_from({1, 9, 4, 16}, slow, 1.25), probed_bytes[2]);
  EXPECT_EQ(faster_from({1, 2, 4, 64}, slow, 1.25), never);
  EXPECT_EQ(faster_from(slow, slow, 1), never);
  EXPECT_EQ(faster_from({3, 6, 12, 48}, slow, 1.25), probed_bytes[0]);
  EXPECT_EQ(faster_from({3, 6, 12, 48}, slow, 1.5), never);
}

// Two ranks of one process, and their stages.
class ProbingPair {
 public:
  ProbingPair() : stages_(2 * bytes) {}
  CopyProbe probe(std::size_t rank) {
    return {.source = source_.data(),
            .own_stages = stages_.data() + rank * bytes,
            .peer_stages = stages_.data() + (1 - rank) * bytes,
            .stages_bytes = bytes,
            .peer = {getpid(), static_cast<int>(1 - rank)},
            .peer_source = reinterpret_cast<std::uintptr_t>(source_.data()),
            .kernel = true,
            .patience = std::chrono::seconds(20)};
  }

 private:
  static constexpr std::size_t bytes = 64 * 1024;
  struct Line {
    alignas(64) std::byte bytes[64];
  };
  class Zeroed {
   public:
    explicit Zeroed(std::size_t size) : lines_(size / sizeof(Line)) {}
    std::byte* data() { return lines_.front().bytes; }

   private:
    std::vector<Line> lines_;
  };
  ProbeSource source_;
  Zeroed stages_;
};

TEST(CopyProbe, MeasuresBothWays) {
  ProbingPair pair;
  std::jthread other([probe = pair.probe(1)] { static_cast<void>(measure_copies(probe)); });
  const auto copies = measure_copies(pair.probe(0));
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  for (std::size_t i = 0; i < probed_bytes.size(); ++i) {
    EXPECT_GT(copies->staged[i], 0);
    EXPECT_GT(copies->kernel[i], 0);
    EXPECT_EQ(copies->mapped[i], 0) << "was not to be measured";
  }
}

TEST(CopyProbe, SaysWhoseMemoryIsRefused) {
  ProbingPair pair;
  CopyProbe refused = pair.probe(0);
  refused.peer_source = 8;
  std::jthread other([probe = pair.probe(1)] { static_cast<void>(measure_copies(probe)); });
  const auto copies = measure_copies(refused);
  ASSERT_FALSE(copies.ok());
  EXPECT_NE(copies.status().message().find("rank 1"), std::string::npos) << copies.status().message();
}

// A peer that lost its core, or has no reason to measure.
TEST(CopyProbe, MeasuresNothingAlone) {
  ProbingPair pair;
  CopyProbe probe = pair.probe(0);
  probe.patience = std::chrono::milliseconds(1);
  const auto copies = measure_copies(probe);
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  EXPECT_EQ(copies->staged, CopyCosts{});
  EXPECT_EQ(copies->kernel, CopyCosts{});
}

// What lies in a stage that the peer has not filled anew comes from this core's cache, at a third of what it costs in a
// collective.
TEST(CopyProbe, WaitsForThePeer) {
  ProbingPair pair;
  std::atomic<bool> came = false;
  std::jthread other([&, probe = pair.probe(1)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    came = true;
    static_cast<void>(measure_copies(probe));
  });
  const auto copies = measure_copies(pair.probe(0));
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  EXPECT_TRUE(came);
  EXPECT_GT(copies->staged.back(), 0);
}

}  // namespace
}  // namespace plait::tl
