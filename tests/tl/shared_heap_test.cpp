// The process's shared heap and its mapping by other processes. One shared heap a process: GoogleTest's discovery runs
// each test in a process of its own.
#include "tl/shm/shared_heap.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace plait::tl {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

SharedHeap& make(std::size_t bytes = 0) {
  const Status made = SharedHeap::create({.bytes = bytes});
  EXPECT_TRUE(made.ok()) << made.message();
  return *SharedHeap::instance();
}

// Runs `body` in a child; its exit status. A sanitizer's handler of a wrong access stays in the parent.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Of this process's memory, in bytes: "VmRSS", "RssShmem".
std::size_t status_bytes(const char* field) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  std::size_t kibibytes = 0;
  const std::string name = std::string(field) + ":";
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, name.c_str(), name.size()) == 0) kibibytes = std::strtoul(line + name.size(), nullptr, 10);
  std::fclose(file);
  return kibibytes * 1024;
}

TEST(SharedHeap, IsNotThereBeforeItIsMade) {
  EXPECT_EQ(SharedHeap::instance(), nullptr);
  EXPECT_EQ(SharedHeap::current_offer().bytes, 0u);
  int here = 0;
  EXPECT_FALSE(SharedHeap::contains(&here));
  EXPECT_FALSE(SharedHeap::contains(nullptr));
  EXPECT_FALSE(SharedHeap::offset_of(&here, sizeof here).has_value());
}

TEST(SharedHeap, GivesAlignedBlocksThatDoNotOverlap) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (const std::size_t bytes : {1ul, 4096ul, 65536ul, 65537ul, 1'000'000ul, 5ul * mebibyte}) {
    auto* block = static_cast<std::byte*>(shared_heap.allocate(bytes, bytes == 65537 ? 1u << 16 : 64));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(SharedHeap::contains(block));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % SharedHeap::page_bytes, 0u);
    EXPECT_GE(SharedHeap::usable_size(block), bytes);
    blocks.emplace_back(block, SharedHeap::usable_size(block));
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[3].first) % (1u << 16), 0u);
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i)
    EXPECT_LE(blocks[i - 1].first + blocks[i - 1].second, blocks[i].first);
}

TEST(SharedHeap, SaysNoWhenItIsFullAndServesAgainWhenBlocksWereFreed) {
  SharedHeap& shared_heap = make(4 * mebibyte);
  std::vector<void*> blocks;
  while (void* block = shared_heap.allocate(256 * 1024)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 16u);
  EXPECT_EQ(shared_heap.allocate(8 * mebibyte), nullptr);
  EXPECT_EQ(shared_heap.allocate(~std::size_t{0}), nullptr);
  for (void* block : blocks) EXPECT_TRUE(SharedHeap::release(block));
  EXPECT_NE(shared_heap.allocate(4 * mebibyte), nullptr);
}

TEST(SharedHeap, JoinsKeptAndReturnedMemoryForALargeBlock) {
  SharedHeap& shared_heap = make(8 * mebibyte);
  void* first = shared_heap.allocate(5 * mebibyte);  // the other 3 MiB stay clean
  EXPECT_TRUE(SharedHeap::release(first));
  EXPECT_NE(shared_heap.allocate(8 * mebibyte), nullptr);
}

TEST(SharedHeap, RefusesWhatIsNoBlock) {
  SharedHeap& shared_heap = make(4 * mebibyte);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(128 * 1024));
  EXPECT_FALSE(SharedHeap::release(block + 1));
  EXPECT_FALSE(SharedHeap::release(block + SharedHeap::page_bytes));
  EXPECT_EQ(SharedHeap::usable_size(block + SharedHeap::page_bytes), 0u);
  EXPECT_TRUE(SharedHeap::release(block));
  EXPECT_FALSE(SharedHeap::release(block));
}

TEST(SharedHeap, ZeroesWhatWasUsedBefore) {
  SharedHeap& shared_heap = make(4 * mebibyte);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(mebibyte));
  std::memset(block, 0xa5, mebibyte);
  EXPECT_TRUE(SharedHeap::release(block));
  auto* again = static_cast<std::byte*>(shared_heap.allocate_zeroed(mebibyte));
  EXPECT_EQ(again, block);
  EXPECT_TRUE(std::all_of(again, again + mebibyte, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(SharedHeap, KnowsWhereARangeLies) {
  SharedHeap& shared_heap = make(4 * mebibyte);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(4 * mebibyte));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(SharedHeap::offset_of(block, 4 * mebibyte), 0u);
  EXPECT_EQ(SharedHeap::offset_of(block + 100, 4 * mebibyte - 100), 100u);
  EXPECT_FALSE(SharedHeap::offset_of(block + 100, 4 * mebibyte).has_value());
  EXPECT_FALSE(SharedHeap::offset_of(block - 1, 1).has_value());
  EXPECT_FALSE(SharedHeap::offset_of(block, ~std::size_t{0}).has_value());
}

TEST(SharedHeap, KeepsItsHighWaterAtTheProgramsAndGivesBackWhatIsFreed) {
  SharedHeap& shared_heap = make();
  constexpr std::size_t bytes = 16 * mebibyte;
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(shared_heap.allocate(bytes));
    std::memset(blocks.back(), 1, bytes);
  }
  const std::size_t peak = status_bytes("RssShmem");
  EXPECT_GE(peak, 16 * bytes);
  // Other sizes than those freed, so that little fits: still no more than the peak, a 64th and what five refusals add.
  for (int i = 0; i < 8; ++i) SharedHeap::release(blocks[static_cast<std::size_t>(2 * i)]);
  for (int i = 0; i < 6; ++i) {
    void* block = shared_heap.allocate(bytes + mebibyte * 3);
    std::memset(block, 1, bytes + mebibyte * 3);
    blocks.push_back(block);
    EXPECT_LE(status_bytes("RssShmem"), peak + peak / 64 + 2 * mebibyte);
  }
  for (void* block : blocks) SharedHeap::release(block);
  EXPECT_LE(status_bytes("RssShmem"), peak / 3);
  EXPECT_EQ(shared_heap.usage().bytes_in_use, 0u);
}

#if !defined(__SANITIZE_THREAD__)  // whose own memory grows with every access
TEST(SharedHeap, AllocatesAndFreesInALoopWithoutPageFaults) {
  SharedHeap& shared_heap = make();
  const auto cycle = [&] {
    for (const std::size_t bytes : {100'000ul, 300'000ul, 5'000'000ul}) {
      void* block = shared_heap.allocate(bytes);
      std::memset(block, 1, bytes);
      SharedHeap::release(block);
    }
  };
  cycle();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 100; ++i) cycle();
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LE(after.ru_minflt - before.ru_minflt, 20);
}
#endif

TEST(SharedHeap, ThreadsKeepTheirOwnContents) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  make(64 * mebibyte);
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned thread) {
    std::mt19937 random(seed + thread);
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    for (int step = 0; step < 3000; ++step) {
      if (blocks.size() < 8 && random() % 2 == 0) {
        const std::size_t bytes = 1 + random() % (2 * mebibyte);
        const bool zeroed = random() % 2 == 0;
        SharedHeap& shared_heap = *SharedHeap::instance();
        auto* block =
            static_cast<unsigned char*>(zeroed ? shared_heap.allocate_zeroed(bytes) : shared_heap.allocate(bytes));
        if (block == nullptr) continue;
        if (zeroed && (block[0] != 0 || block[bytes / 2] != 0 || block[bytes - 1] != 0)) ++wrong;
        const auto mark = static_cast<unsigned char>(thread * 16 + random() % 16);
        block[0] = block[bytes / 2] = block[bytes - 1] = mark;
        blocks.emplace_back(block, bytes);
      } else if (!blocks.empty()) {
        const auto chosen = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
        const auto [block, bytes] = *chosen;
        if (block[0] / 16 != static_cast<int>(thread) || block[bytes / 2] != block[0] || block[bytes - 1] != block[0])
          ++wrong;
        if (!SharedHeap::release(block)) ++wrong;
        blocks.erase(chosen);
      }
    }
    for (const auto& [block, bytes] : blocks) SharedHeap::release(block);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(SharedHeap::instance()->usage().bytes_in_use, 0u);
  EXPECT_NE(SharedHeap::instance()->allocate(64 * mebibyte), nullptr);  // all in one piece again
}

TEST(SharedHeap, TakesNoMemoryWhenTheProgramLocksAllOfItsOwn) {
  SharedHeap& shared_heap = make();
  auto* block = static_cast<unsigned char*>(shared_heap.allocate(mebibyte));
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) GTEST_SKIP() << "mlockall is not permitted";
  EXPECT_LE(status_bytes("RssShmem"), 70 * mebibyte);
  std::memset(block, 1, mebibyte);
  EXPECT_TRUE(SharedHeap::release(block));
  auto* large = static_cast<unsigned char*>(shared_heap.allocate(100 * mebibyte));
  std::memset(large, 1, 100 * mebibyte);
  EXPECT_TRUE(SharedHeap::release(large));
  EXPECT_LE(shared_heap.usage().cached_bytes, 40 * mebibyte);
  munlockall();
}

// ---- fork() ----

TEST(SharedHeapFork, ChildAndParentWriteApart) {
  SharedHeap& shared_heap = make(256 * mebibyte);
  auto* block = static_cast<unsigned char*>(shared_heap.allocate(mebibyte));
  auto* untouched = static_cast<unsigned char*>(shared_heap.allocate(mebibyte));
  std::memset(block, 1, mebibyte);
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child) + pipe(to_parent), 0);
  const pid_t child = fork();
  char token = 0;
  if (child == 0) {
    int bad =
        SharedHeap::instance() != nullptr || SharedHeap::current_offer().bytes != 0 || !SharedHeap::contains(block) ? 1
                                                                                                                    : 0;
    block[5] = 7;
    bad |= write(to_parent[1], &token, 1) == 1 && read(to_child[0], &token, 1) == 1 ? 0 : 2;
    for (std::size_t i = 0; i < mebibyte; ++i) bad |= block[i] == (i == 5 ? 7 : 1) ? 0 : 4;
    bad |= untouched[1000] == 0 ? 0 : 8;
    bad |= SharedHeap::release(block) && !SharedHeap::release(block) ? 0 : 16;
    _exit(bad);
  }
  EXPECT_EQ(read(to_parent[0], &token, 1), 1);
  EXPECT_EQ(block[5], 1);
  std::memset(block, 3, mebibyte);
  std::memset(untouched, 3, mebibyte);
  EXPECT_EQ(write(to_child[1], &token, 1), 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(block[mebibyte - 1], 3);
  EXPECT_NE(shared_heap.allocate(mebibyte), nullptr);
}

TEST(SharedHeapFork, GrandchildrenHaveTheirOwn) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  auto* block = static_cast<unsigned char*>(shared_heap.allocate(mebibyte));
  block[0] = 1;
  const int result = in_child([&] {
    block[0] = 2;
    const int inner = in_child([&] {
      const int bad = block[0] == 2 ? 0 : 1;
      block[0] = 3;
      return bad | (SharedHeap::release(block) ? 0 : 2);
    });
    return inner != 0 || block[0] != 2 ? 4 + inner : 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_EQ(block[0], 1);
}

TEST(SharedHeapFork, WhileOtherThreadsAllocate) {
  make(256 * mebibyte);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        void* block = SharedHeap::instance()->allocate(3 * mebibyte);
        if (block == nullptr) continue;
        std::memset(block, 1, 65536);
        SharedHeap::release(block);
      }
    });
  auto* block = static_cast<unsigned char*>(SharedHeap::instance()->allocate(mebibyte));
  block[0] = 42;
  for (int i = 0; i < 100; ++i) {
    const int result = in_child([&] { return block[0] == 42 && SharedHeap::release(block) ? 0 : 1; });
    ASSERT_EQ(result, 0) << "fork " << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// ---- The program's own mappings, and its own files ----

// A file of the program's, one page after the other with its number in all bytes.
class ProgramFile {
 public:
  explicit ProgramFile(std::size_t pages) : pages_(pages) {
    descriptor_ = memfd_create("program", 0);
    for (std::size_t page = 0; page < pages; ++page) {
      const std::string content(SharedHeap::page_bytes, static_cast<char>(1 + page % 100));
      EXPECT_EQ(pwrite(descriptor_, content.data(), content.size(), static_cast<off_t>(page * content.size())),
                static_cast<ssize_t>(content.size()));
    }
  }
  ~ProgramFile() { close(descriptor_); }
  int descriptor() const { return descriptor_; }
  bool is_intact() const {
    for (std::size_t page = 0; page < pages_; ++page) {
      std::string content(SharedHeap::page_bytes, '\0');
      if (pread(descriptor_, content.data(), content.size(), static_cast<off_t>(page * content.size())) < 0)
        return false;
      if (content != std::string(SharedHeap::page_bytes, static_cast<char>(1 + page % 100))) return false;
    }
    return true;
  }
  // Over memory of the shared heap, as a program that the preloaded library sees.
  void map_over(void* address, std::size_t bytes) const {
    ASSERT_EQ(mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor_, 0), address);
    SharedHeap::mapped_over(address, bytes);
  }

 private:
  std::size_t pages_;
  int descriptor_;
};

constexpr std::size_t page = SharedHeap::page_bytes;

bool all_are(const std::byte* begin, std::size_t bytes, unsigned value) {
  return std::all_of(begin, begin + bytes, [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

// More than is kept of freed memory.
constexpr std::size_t large_bytes = 80 * mebibyte;

TEST(SharedHeapDescriptor, OfAnotherFileIsLeftAlone) {
  SharedHeap& shared_heap = make();
  const ProgramFile file(large_bytes / page);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(large_bytes));
  std::memset(block, 1, large_bytes);
  if (mlock(block, page) != 0) GTEST_SKIP() << "mlock is not permitted";  // madvise() refuses such memory
  // As a program that closes all descriptors and opens files of its own.
  ASSERT_EQ(dup2(file.descriptor(), shared_heap.offer().descriptor), shared_heap.offer().descriptor);
  EXPECT_TRUE(SharedHeap::release(block));
  EXPECT_TRUE(file.is_intact());
  auto* again = static_cast<std::byte*>(shared_heap.allocate_zeroed(large_bytes));
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(all_are(again, large_bytes, 0));
  EXPECT_EQ(in_child([&] { return all_are(again, large_bytes, 0) ? 0 : 1; }), 0);
  std::memset(again, 2, large_bytes);
  int drop_result = -1;
  EXPECT_TRUE(SharedHeap::drop(again, 2 * page, MADV_DONTNEED, drop_result));
  EXPECT_EQ(drop_result, 0);
  EXPECT_TRUE(all_are(again, 2 * page, 0));
  EXPECT_TRUE(all_are(again + 2 * page, page, 2));
  EXPECT_TRUE(file.is_intact());
}

// The child's memory cannot be a view of what the number is now.
TEST(SharedHeapDescriptor, OfAnotherFileIsNotMappedByAChild) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  const ProgramFile file(4);
  ASSERT_EQ(dup2(file.descriptor(), shared_heap.offer().descriptor), shared_heap.offer().descriptor);
  const auto* begin = reinterpret_cast<std::byte*>(detail::shared_heap_range.begin.load());
  EXPECT_EQ(in_child([&] { return all_are(begin, page, 0) ? 0 : 1; }), 0);
  EXPECT_EQ(fcntl(shared_heap.offer().descriptor, F_GETFD), 0);
}

TEST(SharedHeapMappings, PagesThatTheProgramMapsOverAreNotShared) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  const ProgramFile file(2);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(8 * page));
  std::memset(block, 7, 8 * page);
  ASSERT_TRUE(SharedHeap::offset_of(block, 8 * page).has_value());
  file.map_over(block + 3 * page, 2 * page);
  EXPECT_FALSE(SharedHeap::offset_of(block, 8 * page).has_value());
  EXPECT_FALSE(SharedHeap::offset_of(block + 3 * page, 1).has_value());
  EXPECT_FALSE(SharedHeap::offset_of(block + 5 * page - 1, 2).has_value());
  EXPECT_TRUE(SharedHeap::offset_of(block, 3 * page).has_value());
  EXPECT_TRUE(SharedHeap::offset_of(block + 5 * page, 3 * page).has_value());
  EXPECT_TRUE(SharedHeap::offset_of(block + 3 * page, 0).has_value());
  EXPECT_TRUE(SharedHeap::owns_any(block, 4 * page));
  EXPECT_FALSE(SharedHeap::owns_any(block + 3 * page, 2 * page));
  EXPECT_FALSE(SharedHeap::resize(block, 12 * page));
  EXPECT_FALSE(SharedHeap::resize(block, 2 * page));
}

// As the C library unmaps a block with all that lies there.
TEST(SharedHeapMappings, AReleasedBlockIsTheSharedHeapsAgain) {
  SharedHeap& shared_heap = make(large_bytes);  // so that the next block is the same
  const ProgramFile file(4);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(large_bytes));
  std::memset(block, 7, large_bytes);
  file.map_over(block + page, 4 * page);
  EXPECT_TRUE(SharedHeap::release(block));  // and given back to the system
  EXPECT_TRUE(file.is_intact());
  auto* again = static_cast<std::byte*>(shared_heap.allocate_zeroed(large_bytes));
  ASSERT_EQ(again, block);
  EXPECT_TRUE(all_are(again, 8 * page, 0));
  std::memset(again, 9, 8 * page);
  EXPECT_TRUE(file.is_intact());
  EXPECT_TRUE(SharedHeap::offset_of(again, large_bytes).has_value());
  const SharedHeapOffer offer = shared_heap.offer();
  const std::uint64_t offset = *SharedHeap::offset_of(again, large_bytes);
  EXPECT_EQ(in_child([&] {
              const Result<PeerSharedHeap> peer = PeerSharedHeap::attach(offer);
              return peer.ok() && all_are(peer.value().at(offset, 8 * page), 8 * page, 9) ? 0 : 1;
            }),
            0);
}

TEST(SharedHeapMappings, ABlockThatCannotBeHadBackStaysUsed) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  const ProgramFile file(2), other(1);
  void* block = shared_heap.allocate(mebibyte);
  file.map_over(block, page);
  ASSERT_EQ(dup2(other.descriptor(), shared_heap.offer().descriptor), shared_heap.offer().descriptor);
  EXPECT_TRUE(SharedHeap::release(block));
  for (int i = 0; i < 100; ++i) EXPECT_NE(shared_heap.allocate(mebibyte / 2), block);
  EXPECT_TRUE(file.is_intact());
}

TEST(SharedHeapMappings, FreePagesThatTheProgramTakesAreNeverHandedOut) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  const ProgramFile file(1);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(mebibyte));
  EXPECT_TRUE(SharedHeap::release(block));
  file.map_over(block + 5 * page, page);
  while (auto* other = static_cast<std::byte*>(shared_heap.allocate(256 * 1024))) {
    EXPECT_TRUE(other + 256 * 1024 <= block + 5 * page || other > block + 5 * page);
    std::memset(other, 3, 256 * 1024);
  }
  EXPECT_TRUE(file.is_intact());
}

TEST(SharedHeapMappings, UnmappedPagesStayTheSharedHeaps) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(mebibyte));
  std::memset(block, 7, mebibyte);
  int result = -1;
  ASSERT_TRUE(SharedHeap::unmap(block + 16 * page, 4 * page - 1, result));
  EXPECT_EQ(result, 0);
  EXPECT_FALSE(SharedHeap::offset_of(block, mebibyte).has_value());
  EXPECT_EQ(in_child([&] { return block[18 * page] == std::byte{7} ? 0 : 1; }), 1000 + SIGSEGV);
  for (int i = 0; i < 100; ++i) {
    void* other = mmap(nullptr, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_FALSE(SharedHeap::contains(other));
  }
  EXPECT_FALSE(SharedHeap::unmap(block + 1, page, result));  // the system's to refuse
  EXPECT_FALSE(SharedHeap::unmap(block, 0, result));
  EXPECT_TRUE(SharedHeap::release(block));
  auto* again = static_cast<std::byte*>(shared_heap.allocate(mebibyte));
  ASSERT_EQ(again, block);
  std::memset(again, 1, mebibyte);
  EXPECT_TRUE(SharedHeap::offset_of(again, mebibyte).has_value());
}

// What an allocator of the program's expects, which keeps its own memory in a block.
TEST(SharedHeapMappings, DroppedPagesReadAsZeros) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  const ProgramFile file(1);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(mebibyte));
  std::memset(block, 7, mebibyte);
  file.map_over(block + 10 * page, page);
  const std::size_t before = status_bytes("RssShmem");
  int result = -1;
  ASSERT_TRUE(SharedHeap::drop(block + 2 * page, 200 * page, MADV_DONTNEED, result));
  EXPECT_EQ(result, 0);
  EXPECT_LE(status_bytes("RssShmem") + 190 * page, before);
  EXPECT_TRUE(all_are(block, 2 * page, 7));
  EXPECT_TRUE(all_are(block + 2 * page, 8 * page, 0));
  EXPECT_TRUE(all_are(block + 10 * page, page, 1));
  EXPECT_TRUE(all_are(block + 11 * page, 191 * page, 0));
  EXPECT_TRUE(all_are(block + 202 * page, page, 7));
  EXPECT_TRUE(SharedHeap::offset_of(block + 11 * page, 100 * page).has_value());  // peers see zeros as well
  EXPECT_FALSE(SharedHeap::drop(block + 1, page, MADV_DONTNEED, result));         // the system's to refuse
}

TEST(SharedHeapMappings, AChildHasWhatTheProgramMapped) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  const ProgramFile file(2);
  auto* block = static_cast<std::byte*>(shared_heap.allocate(mebibyte));
  std::memset(block, 7, mebibyte);
  file.map_over(block + 3 * page, 2 * page);
  const int result = in_child([&] {
    int bad = all_are(block, 3 * page, 7) && all_are(block + 5 * page, mebibyte - 5 * page, 7) ? 0 : 1;
    bad |= all_are(block + 3 * page, page, 1) && all_are(block + 4 * page, page, 2) ? 0 : 2;
    std::memset(block, 8, 3 * page);
    return bad | (SharedHeap::release(block) ? 0 : 4);
  });
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(all_are(block, 3 * page, 7));
  EXPECT_TRUE(file.is_intact());
}

// ---- Peers ----

TEST(PeerSharedHeap, WritesIntoTheOwnersMemory) {
  SharedHeap& shared_heap = make(64 * mebibyte);
  auto* block = static_cast<unsigned char*>(shared_heap.allocate(mebibyte));
  block[10] = 1;
  const SharedHeapOffer offer = shared_heap.offer();
  const std::uint64_t offset = *SharedHeap::offset_of(block, mebibyte);
  const int result = in_child([&] {
    const Result<PeerSharedHeap> first = PeerSharedHeap::attach(offer);
    const Result<PeerSharedHeap> second = PeerSharedHeap::attach(offer);
    if (!first.ok() || !second.ok()) return 1;
    std::byte* there = first.value().at(offset, mebibyte);
    if (there == nullptr || there != second.value().at(offset, mebibyte)) return 2;
    first.value().ensure_mapped(offset + 5, mebibyte - 5);
    if (there[10] != std::byte{1}) return 3;
    there[11] = std::byte{2};
    if (first.value().at(offset, 64 * mebibyte) != (offset == 0 ? there : nullptr)) return 4;
    if (first.value().at(64 * mebibyte, 1) != nullptr || first.value().at(1, ~std::uint64_t{0}) != nullptr) return 5;
    return 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_EQ(block[11], 2);
}

TEST(PeerSharedHeap, OfThisProcessIsItsOwnMemory) {
  SharedHeap& shared_heap = make(4 * mebibyte);
  void* block = shared_heap.allocate(100);
  const Result<PeerSharedHeap> own = PeerSharedHeap::attach(shared_heap.offer());
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own.value().at(*SharedHeap::offset_of(block, 100), 100), block);
}

TEST(PeerSharedHeap, RefusesWhatWasNotOffered) {
  SharedHeap& shared_heap = make(4 * mebibyte);
  SharedHeapOffer offer = shared_heap.offer();
  const auto refused = [](const SharedHeapOffer& wrong) {
    return in_child([&] {
      const Result<PeerSharedHeap> peer = PeerSharedHeap::attach(wrong);
      return !peer.ok() && peer.status().code() == Code::unavailable ? 0 : 1;
    });
  };
  EXPECT_EQ(refused({}), 0);
  offer.inode += 1;
  EXPECT_EQ(refused(offer), 0);
  offer = shared_heap.offer();
  offer.bytes *= 2;
  EXPECT_EQ(refused(offer), 0);
  offer = shared_heap.offer();
  offer.descriptor = 9999;
  EXPECT_EQ(refused(offer), 0);
}

}  // namespace
}  // namespace plait::tl
