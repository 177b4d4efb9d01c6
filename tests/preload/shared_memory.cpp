// The allocator's and MPI's functions for memory, in a program under mpirun.
//   preload_shared_memory CASE shared heap|private      where blocks of 64 KiB and more are expected
// Prints "right" on rank 0, and a line for each thing that is wrong.
#include <malloc.h>
#include <mpi.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absurd_sizes.h"
#include "in_shared_heap.h"
#include "plait/plait.h"

namespace {

constexpr std::size_t large = 65536, kibibyte = 1024, mebibyte = 1024 * 1024;

std::atomic<int> failures{0};
bool expects_shared_heap = false;

void check(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::printf("wrong: %s\n", what);
}
#define CHECK(condition) check(condition, #condition)

// A large block, and where it stands.
void check_large(void* block, const char* what) {
  check(block != nullptr, what);
  check(in_shared_heap(block) == static_cast<int>(expects_shared_heap), what);
}

bool aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

bool is_filled(const void* block, std::size_t bytes, int value) {
  const auto* begin = static_cast<const unsigned char*>(block);
  return std::all_of(begin, begin + bytes, [&](unsigned char byte) { return byte == value; });
}

// ---- Each function ----

void large_and_small() {
  void* block = std::malloc(large);
  check_large(block, "malloc(64 KiB)");
  CHECK(malloc_usable_size(block) >= large);
  std::memset(block, 0xff, large);
  std::free(block);
  void* small = std::malloc(large - 1);
  CHECK(in_shared_heap(small) == 0);
  std::free(small);
  std::free(nullptr);
  CHECK(malloc_usable_size(nullptr) == 0);
  for (int i = 0; i < 3; ++i) {
    void* zeroed = std::calloc(1000, 1000);
    check_large(zeroed, "calloc(1000, 1000)");
    CHECK(is_filled(zeroed, 1'000'000, 0));
    std::memset(zeroed, 0xff, 1'000'000);
    std::free(zeroed);
  }
  volatile std::size_t huge = SIZE_MAX;
  CHECK(std::malloc(huge) == nullptr && errno == ENOMEM);
  CHECK(std::calloc(huge, 16) == nullptr);
  CHECK(reallocarray(nullptr, huge, 16) == nullptr);
  errno = 5;
  void* kept = std::malloc(64 * mebibyte);
  std::memset(kept, 1, 64 * mebibyte);
  std::free(kept);
  CHECK(errno == 5);
}

void alignments() {
  for (std::size_t alignment = sizeof(void*); alignment <= 8 * mebibyte; alignment *= 2) {
    void* block = nullptr;
    CHECK(posix_memalign(&block, alignment, 100 * kibibyte) == 0);
    CHECK(aligned(block, alignment));
    if (alignment <= 2 * mebibyte) check_large(block, "posix_memalign");
    std::free(block);
    block = std::aligned_alloc(alignment, 16 * mebibyte);
    CHECK(block != nullptr && aligned(block, alignment));
    std::free(block);
    block = memalign(alignment, 300 * kibibyte);
    CHECK(block != nullptr && aligned(block, alignment));
    std::free(block);
  }
  void* none = nullptr;
  CHECK(posix_memalign(&none, 3, 100 * kibibyte) == EINVAL);
  CHECK(posix_memalign(&none, 4, 100 * kibibyte) == EINVAL);
  void* pages = valloc(100 * kibibyte);
  check_large(pages, "valloc");
  CHECK(aligned(pages, 4096));
  std::free(pages);
  pages = pvalloc(100 * kibibyte);
  check_large(pages, "pvalloc");
  CHECK(aligned(pages, 4096) && malloc_usable_size(pages) >= 100 * kibibyte);
  std::free(pages);
}

void reallocations() {
  auto* block = static_cast<char*>(std::malloc(100));
  std::memset(block, 7, 100);
  for (const std::size_t bytes :
       {200ul, 70000ul, 60000ul, 300'000ul, 5'000'000ul, 4'000'000ul, 65536ul, 65535ul, 100ul}) {
    block = static_cast<char*>(std::realloc(block, bytes));
    CHECK(block != nullptr && is_filled(block, 100, 7));
    if (bytes >= large && bytes != 65536) check_large(block, "realloc");
    std::memset(block, 7, bytes);
  }
  block = static_cast<char*>(std::realloc(block, mebibyte));
  block = static_cast<char*>(reallocarray(block, 2, mebibyte));
  CHECK(block != nullptr && is_filled(block, 100, 7));
  volatile std::size_t huge = SIZE_MAX;
  CHECK(std::realloc(block, huge) == nullptr);
  CHECK(is_filled(block, 100, 7));  // still there
  CHECK(std::realloc(block, 0) == nullptr);
  void* fresh = std::realloc(nullptr, mebibyte);
  check_large(fresh, "realloc(nullptr, 1 MiB)");
  std::free(fresh);
}

void cpp_and_c_library() {
  {
    std::vector<double> numbers(100'000, 1.0);
    check_large(numbers.data(), "std::vector");
    numbers.resize(1'000'000, 2.0);
    CHECK(numbers[0] == 1.0 && numbers[999'999] == 2.0);
    struct alignas(256) Aligned {
      char bytes[256];
    };
    const auto many = std::make_unique<Aligned[]>(1000);
    check_large(many.get(), "new of aligned objects");
    CHECK(aligned(many.get(), 256));
  }
  const std::string text(200'000, 'x');
  char* copy = strdup(text.c_str());
  check_large(copy, "strdup");
  CHECK(text == copy);
  std::free(copy);
}

// ---- Random use by threads ----

void stress_thread(unsigned seed, unsigned char mark) {
  std::mt19937 random(seed);
  struct Block {
    unsigned char* begin = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Block> blocks(40);
  const auto any_size = [&] { return std::size_t{1} << (random() % 21); };
  for (int step = 0; step < 20'000; ++step) {
    Block& block = blocks[random() % blocks.size()];
    if (block.begin != nullptr) {
      const std::size_t last = block.bytes - 1;
      CHECK(block.begin[0] == mark && block.begin[last / 2] == mark && block.begin[last] == mark);
    }
    const std::size_t bytes = any_size() + random() % 1000;
    const unsigned what = random() % 5;
    if (what == 0) {
      std::free(block.begin);
      block = {};
      continue;
    }
    if (what == 1 && block.begin != nullptr) {
      const std::size_t old_last = block.bytes - 1;
      block.begin = static_cast<unsigned char*>(std::realloc(block.begin, bytes));
      CHECK(block.begin[0] == mark);
      CHECK(bytes <= old_last || (block.begin[old_last / 2] == mark && block.begin[old_last] == mark));
    } else {
      std::free(block.begin);
      void* fresh = nullptr;
      if (what == 2) {
        fresh = std::calloc(1, bytes);
        const auto* zeros = static_cast<unsigned char*>(fresh);
        CHECK(zeros[0] == 0 && zeros[bytes / 2] == 0 && zeros[bytes - 1] == 0);
      } else if (what == 3) {
        const std::size_t alignment = std::size_t{8} << (random() % 12);
        CHECK(posix_memalign(&fresh, alignment, bytes) == 0 && aligned(fresh, alignment));
      } else {
        fresh = std::malloc(bytes);
      }
      block.begin = static_cast<unsigned char*>(fresh);
    }
    block.bytes = bytes;
    block.begin[0] = block.begin[(bytes - 1) / 2] = block.begin[bytes - 1] = mark;
  }
  for (const Block& block : blocks) std::free(block.begin);
}

void stress() {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(stress_thread, seed + i, static_cast<unsigned char>(i + 1));
  for (std::thread& thread : threads) thread.join();
}

// ---- Other processes ----

int exit_status(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

void forked_child(std::vector<char>& before) {
  int bad = is_filled(before.data(), before.size(), 1) ? 0 : 1;
  std::fill(before.begin(), before.end(), 2);
  std::vector<char> after(mebibyte, 3);
  bad |= in_shared_heap(after.data()) == 0 ? 0 : 2;
  bad |= in_shared_heap(before.data()) == 0 ? 0 : 4;
  before.resize(4 * mebibyte, 4);
  bad |= before[0] == 2 && before[mebibyte] == 4 ? 0 : 8;
  before = {};
  std::free(std::malloc(100));
  _exit(bad | (std::system("exit 3") == 3 << 8 ? 0 : 16));
}

void processes() {
  std::vector<char> block(mebibyte, 1);
  const pid_t child = fork();
  if (child == 0) forked_child(block);
  CHECK(exit_status(child) == 0);
  CHECK(is_filled(block.data(), block.size(), 1));
  check_large(block.data(), "a block after fork");

  std::string word(100'000, 'y');  // an argument out of a large block
  const pid_t execs = fork();
  if (execs == 0) {
    execl("/bin/sh", "sh", "-c", "test ${#1} = 100000", "sh", word.c_str(), static_cast<char*>(nullptr));
    _exit(9);
  }
  CHECK(exit_status(execs) == 0);
  const pid_t vforked = vfork();
  if (vforked == 0) {
    execl("/bin/sh", "sh", "-c", "test ${#1} = 100000", "sh", word.c_str(), static_cast<char*>(nullptr));
    _exit(9);
  }
  CHECK(exit_status(vforked) == 0);
  CHECK(std::system("exit 7") == 7 << 8);
  char answer[16] = "";
  std::FILE* stream = popen("echo hello", "r");
  CHECK(std::fgets(answer, sizeof answer, stream) != nullptr && std::strcmp(answer, "hello\n") == 0);
  pclose(stream);
  char shell[] = "sh", option[] = "-c", command[] = "exit 5";
  char* arguments[] = {shell, option, command, nullptr};
  pid_t spawned = 0;
  CHECK(posix_spawn(&spawned, "/bin/sh", nullptr, nullptr, arguments, environ) == 0 && exit_status(spawned) == 5);
}

// ---- A small shared heap ----

// With PLAIT_SHARED_HEAP_BYTES=4M: what has no room there is the C library's.
void full() {
  std::vector<char*> blocks;
  int shared = 0;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(static_cast<char*>(std::malloc(256 * kibibyte)));
    std::memset(blocks.back(), i, 256 * kibibyte);
    shared += in_shared_heap(blocks.back());
  }
  CHECK(shared == (expects_shared_heap ? 16 : 0) || shared == (expects_shared_heap ? 15 : 0));
  for (int i = 0; i < 64; ++i) {
    char*& block = blocks[static_cast<std::size_t>(i)];
    block = static_cast<char*>(std::realloc(block, 300 * kibibyte));
    CHECK(is_filled(block, 256 * kibibyte, i));
  }
  for (char* block : blocks) std::free(block);
  void* freed = std::malloc(mebibyte);
  check_large(freed, "malloc after all was freed");
  std::free(freed);
}

// ---- What the program maps and drops ----

// The largest byte of all ranks at each place of the block.
std::vector<unsigned char> largest(const unsigned char* block, std::size_t bytes) {
  std::vector<unsigned char> result(bytes);
  MPI_Allreduce(block, result.data(), static_cast<int>(bytes), MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
  return result;
}

// Blocks with another file's pages in their midst, and with pages that were dropped: all ranks see what their owner
// sees.
void mappings() {
  constexpr std::size_t page = 4096, bytes = mebibyte, from = 64 * page, mapped = 4 * page;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int last = ranks - 1;
  const int file = memfd_create("program", 0);
  const std::vector<unsigned char> content(mapped, static_cast<unsigned char>(100 + rank));
  CHECK(write(file, content.data(), mapped) == static_cast<ssize_t>(mapped));
  for (int round = 0; round < 3; ++round) {
    void* aligned_block = nullptr;
    CHECK(posix_memalign(&aligned_block, page, bytes) == 0);
    auto* block = static_cast<unsigned char*>(aligned_block);
    check_large(block, "the block");
    std::memset(block, 1 + rank, bytes);
    CHECK(largest(block, bytes) == std::vector<unsigned char>(bytes, static_cast<unsigned char>(1 + last)));

    CHECK(mmap(block + from, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == block + from);
    std::vector<unsigned char> seen = largest(block, bytes);
    CHECK(is_filled(seen.data(), from, 1 + last));
    CHECK(is_filled(seen.data() + from, mapped, 100 + last));
    CHECK(is_filled(seen.data() + from + mapped, bytes - from - mapped, 1 + last));

    CHECK(madvise(block + 128 * page, 8 * page, MADV_DONTNEED) == 0);
    CHECK(is_filled(block + 128 * page, 8 * page, 0));
    seen = largest(block, bytes);
    CHECK(is_filled(seen.data() + 128 * page, 8 * page, 0));
    CHECK(is_filled(seen.data() + 136 * page, 4 * page, 1 + last));

    CHECK(munmap(block + 200 * page, page) == 0);
    void* elsewhere = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(elsewhere != block + 200 * page || !expects_shared_heap);
    munmap(elsewhere, page);
    std::free(block);

    std::vector<unsigned char> kept(mapped);
    CHECK(pread(file, kept.data(), mapped, 0) == static_cast<ssize_t>(mapped) && kept == content);
  }
  close(file);
}

// ---- What nobody can serve ----

void absurd_sizes() { failures += plait::tests::wrong_answers_to_absurd_sizes(); }

// ---- MPI's functions ----

void mpi_memory() {
  for (const MPI_Aint bytes : {1, 100, 65536, 10'000'000}) {
    char* block = nullptr;
    CHECK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &block) == MPI_SUCCESS);
    CHECK(in_shared_heap(block) == static_cast<int>(expects_shared_heap));
    std::memset(block, 1, static_cast<std::size_t>(bytes));
    CHECK(MPI_Free_mem(block) == MPI_SUCCESS);
    block = static_cast<char*>(plait_alloc(static_cast<std::size_t>(bytes)));
    CHECK(in_shared_heap(block) == static_cast<int>(expects_shared_heap) && aligned(block, 4096));
    std::memset(block, 1, static_cast<std::size_t>(bytes));
    plait_free(block);
  }
  plait_free(nullptr);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_minimum_memory_alignment", "65536");
  void* block = nullptr;
  CHECK(MPI_Alloc_mem(100, info, &block) == MPI_SUCCESS);
  CHECK(!expects_shared_heap || (in_shared_heap(block) == 1 && aligned(block, 65536)));
  MPI_Free_mem(block);
  MPI_Info_set(info, "another_key", "1");
  CHECK(MPI_Alloc_mem(100, info, &block) == MPI_SUCCESS);
  CHECK(in_shared_heap(block) == 0);
  MPI_Free_mem(block);
  MPI_Info_free(&info);

  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(MPI_Alloc_mem(-1, MPI_INFO_NULL, &block) != MPI_SUCCESS);
  if (!expects_shared_heap) return;
  MPI_Alloc_mem(mebibyte, MPI_INFO_NULL, &block);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(MPI_Free_mem(static_cast<char*>(block) + 4096), &error_class);
  CHECK(error_class == MPI_ERR_BASE);
  CHECK(MPI_Free_mem(block) == MPI_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::map<std::string, void (*)()> cases = {{"functions",
                                                    [] {
                                                      large_and_small();
                                                      alignments();
                                                      reallocations();
                                                      cpp_and_c_library();
                                                    }},
                                                   {"stress", stress},
                                                   {"processes", processes},
                                                   {"full", full},
                                                   {"mappings", mappings},
                                                   {"mpi", mpi_memory},
                                                   {"absurd", absurd_sizes}};
  void* early = std::malloc(mebibyte);  // before MPI_Init: private
  if (in_shared_heap(early) != 0) ++failures;
  if (std::strcmp(argv[1], "absurd") == 0) absurd_sizes();
  MPI_Init(&argc, &argv);
  expects_shared_heap = std::strcmp(argv[2], "shared_heap") == 0;
  cases.at(argv[1])();
  std::free(early);
  int all = 0, mine = failures, rank = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && all == 0) std::printf("right\n");
  void* late = std::malloc(mebibyte);
  MPI_Finalize();
  std::free(late);
  return all == 0 ? 0 : 1;
}
