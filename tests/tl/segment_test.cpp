#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "tl/shm/segment_shape.h"
#include "tl/shm/shm_channel.h"

namespace plait::tl {
namespace {

// The exit status of `body` in a process of its own; -signal when one ended it.
int in_child(const std::function<int()>& body) {
  const int child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool contains(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

int segments_with_a_name() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().starts_with("plait")) ++count;
  return count;
}

TEST(SharedSegment, IsZeroedSharedAndNameless) {
  auto segment = SharedSegment::create(1 << 20);
  ASSERT_TRUE(segment.ok()) << segment.status().message();
  EXPECT_EQ(segment->bytes(), std::size_t{1} << 20);
  std::byte* const end = segment->data() + segment->bytes();
  EXPECT_TRUE(std::all_of(segment->data(), end, [](std::byte b) { return b == std::byte{}; }));
  EXPECT_EQ(segments_with_a_name(), 0);
  const SegmentOffer offer = segment->offer();
  EXPECT_EQ(in_child([&] {
              auto attached = SharedSegment::attach(offer);
              if (!attached.ok()) return 1;
              attached->data()[12345] = std::byte{42};
              return 0;
            }),
            0);
  EXPECT_EQ(segment->data()[12345], std::byte{42});
}

TEST(SharedSegment, IsPrivateToTheUser) {
  auto segment = SharedSegment::create(4096);
  ASSERT_TRUE(segment.ok());
  struct stat found;
  ASSERT_EQ(fstat(segment->descriptor(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_EQ(fcntl(segment->descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(SharedSegment, StaysWhenTheDescriptorIsClosed) {
  auto segment = SharedSegment::create(4096);
  ASSERT_TRUE(segment.ok());
  segment->close_descriptor();
  EXPECT_EQ(segment->descriptor(), -1);
  SharedSegment moved = std::move(*segment);
  moved.data()[0] = std::byte{1};
  EXPECT_EQ(moved.data()[0], std::byte{1});
}

TEST(SharedSegment, SaysWhyItCannotAttach) {
  auto segment = SharedSegment::create(4096);
  ASSERT_TRUE(segment.ok());
  const std::string mine = "/proc/" + std::to_string(getpid()) + "/fd/";
  SegmentOffer offer = segment->offer();
  offer.descriptor = 999;
  const auto closed = SharedSegment::attach(offer);
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.status().code(), Code::unavailable);
  EXPECT_TRUE(contains(closed.status(), mine + "999: No such file or directory")) << closed.status().message();
  offer = segment->offer();
  offer.bytes = 8192;
  const auto other_size = SharedSegment::attach(offer);
  ASSERT_FALSE(other_size.ok());
  EXPECT_TRUE(contains(other_size.status(), "is not a segment of 8192 bytes")) << other_size.status().message();
  const int gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  offer = segment->offer();
  offer.process = gone;
  EXPECT_FALSE(SharedSegment::attach(offer).ok());
}

// A process id that is another process's by now, or a descriptor that was closed and is another file: of the same size.
TEST(SharedSegment, AttachesToNothingButWhatWasOffered) {
  auto offered = SharedSegment::create(4096);
  ASSERT_TRUE(offered.ok());
  const SegmentOffer offer = offered->offer();
  EXPECT_TRUE(SharedSegment::attach(offer).ok());
  auto other = SharedSegment::create(4096);
  ASSERT_TRUE(other.ok());
  ASSERT_EQ(dup2(other->descriptor(), offer.descriptor), offer.descriptor);
  const auto attached = SharedSegment::attach(offer);
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.status().code(), Code::unavailable);
  EXPECT_TRUE(contains(attached.status(), "is not the segment that was offered")) << attached.status().message();
}

// What a rank writes lies on its node: its control block, and the rings to the others.
TEST(SharedSegment, IsPlacedByItsWriters) {
  constexpr int ranks = 3;
  const int numa[ranks] = {1, -1, 0};
  const std::size_t bytes = SharedSegment::default_bytes(ranks);
  const detail::SegmentShape shape = detail::segment_shape(bytes, ranks);
  std::byte* base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 30);
  const std::vector<PlacedRange> placed = detail::placed_ranges(base, bytes, numa);
  const auto node_of = [&](std::size_t offset) {
    for (const PlacedRange& range : placed)
      if (base + offset >= range.begin && base + offset < range.begin + range.bytes) return range.numa;
    return -2;
  };
  constexpr std::size_t page = 4096;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(node_of(rank * shape.control_block.bytes() + page), numa[rank]);
    EXPECT_EQ(node_of((rank + 1) * shape.control_block.bytes() - page), numa[rank]);
    for (std::size_t to = 0; to < ranks; ++to) {
      if (to == rank) continue;
      const std::size_t ring = detail::ring_offset(shape, ranks, rank, to);
      EXPECT_EQ(node_of(ring + page), numa[rank]) << rank << " to " << to;
      EXPECT_EQ(node_of(ring + shape.ring.bytes() - page), numa[rank]) << rank << " to " << to;
    }
  }
  for (std::size_t i = 0; i < placed.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(placed[i].begin) % page, 0u);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_TRUE(placed[i].begin >= placed[j].begin + placed[j].bytes ||
                  placed[j].begin >= placed[i].begin + placed[i].bytes);
  }
}

// Nodes that this machine does not have do no harm.
TEST(SharedSegment, IsMadeWhereItCannotBePlaced) {
  const int numa[] = {0, 1000};
  auto segment = SharedSegment::create(1 << 20, numa);
  ASSERT_TRUE(segment.ok()) << segment.status().message();
  EXPECT_TRUE(
      std::all_of(segment->data(), segment->data() + segment->bytes(), [](std::byte b) { return b == std::byte{}; }));
}

// The limit on file sizes must not end the job by SIGXFSZ.
TEST(SharedSegment, SurvivesTheFileSizeLimit) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{64 * 1024, 64 * 1024};
              setrlimit(RLIMIT_FSIZE, &limit);
              const auto segment = SharedSegment::create(1 << 20);
              if (segment.ok() || segment.status().code() != Code::unavailable) return 1;
              if (!contains(segment.status(), "File too large")) return 2;
              sigset_t pending;
              sigpending(&pending);
              return sigismember(&pending, SIGXFSZ) == 1 ? 3 : 0;
            }),
            0);
}

// The child's own mount of /dev/shm, which needs privileges: 77 where they are missing.
int with_tiny_shm(const std::function<int()>& body) {
  return in_child([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k") != 0)
      return 77;
    return body();
  });
}

TEST(SharedSegment, NoticesAFullFileSystem) {
  const int result = with_tiny_shm([] {
    const auto segment = SharedSegment::create(1 << 20);
    if (segment.ok()) return 1;
    if (!contains(segment.status(), "No space left on device")) return 2;
    return SharedSegment::create(32 * 1024).ok() ? 0 : 3;  // what was reserved has been given back
  });
  if (result == 77) GTEST_SKIP() << "no permission to mount";
  EXPECT_EQ(result, 0);
}

TEST(SharedSegment, SaysThatShmIsMissing) {
  const int result = with_tiny_shm([] {
    if (mount("none", "/dev/shm", nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 77;
    const auto segment = SharedSegment::create(4096);
    return !segment.ok() && contains(segment.status(), "Read-only file system") ? 0 : 1;
  });
  if (result == 77) GTEST_SKIP() << "no permission to mount";
  EXPECT_EQ(result, 0);
}

TEST(SharedSegment, AKilledProcessLeavesNothing) {
  EXPECT_EQ(in_child([] {
              auto segment = SharedSegment::create(1 << 20);
              raise(SIGKILL);
              return segment.ok() ? 0 : 1;
            }),
            -SIGKILL);
  EXPECT_EQ(segments_with_a_name(), 0);
}

TEST(CanReadProcess, OnlyWhereTheValueIsFound) {
  const std::uint64_t value = 0x1234567890abcdef;
  const int parent = getpid();
  EXPECT_EQ(in_child([&] {
              if (!can_read_process(parent, &value, value)) return 1;
              if (can_read_process(parent, &value, value + 1)) return 2;
              return can_read_process(parent, nullptr, value) ? 3 : 0;
            }),
            0);
  const int gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  EXPECT_FALSE(can_read_process(gone, &value, value));
}

// The longest stages for as many ranks as a node's cores usually are, and never more than its memory bears.
TEST(SharedSegment, RoomyOnesHaveTheLongestStages) {
  for (const int ranks : {2, 16, 24})
    EXPECT_EQ(detail::segment_shape(SharedSegment::roomy_bytes(ranks), ranks).control_block.stage_bytes,
              detail::largest_stage)
        << ranks << " ranks";
  for (const int ranks : {2, 64, 200, 400}) {
    EXPECT_GE(SharedSegment::roomy_bytes(ranks), SharedSegment::default_bytes(ranks));
    EXPECT_LE(SharedSegment::roomy_bytes(ranks), std::max(std::size_t{64} << 20, SharedSegment::default_bytes(ranks)));
  }
}

}  // namespace
}  // namespace plait::tl
