// Allocates and frees blocks of mixed sizes, as a simulation code with many small objects and some arrays does, and
// prints the processor's
// seconds that took. perf/malloc runs it with and without Plait.
//   malloc_mix BLOCKS [SEED]
#include <mpi.h>
#include <time.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct SizeClass {
  std::size_t from, to;     // bytes
  std::uint32_t per_10000;  // blocks
};
constexpr std::array<SizeClass, 8> mix = {{{16, 64, 5500},
                                           {64, 256, 2500},
                                           {256, 1024, 1200},
                                           {1024, 4096, 500},
                                           {4096, 16384, 200},
                                           {16384, 65536, 70},
                                           {65536, 262144, 20},
                                           {262144, 1048576, 10}}};

// Marsaglia's xorshift: a few cycles, so that the allocator is what is measured.
struct Random {
  std::uint64_t state;
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

// One of the sizes, by the mix; made before the clock starts.
std::vector<std::uint32_t> draw_sizes(Random& random) {
  std::vector<std::uint32_t> sizes(1 << 16);
  for (std::uint32_t& size : sizes) {
    std::uint64_t place = random() % 10000;
    const SizeClass* chosen = mix.data();
    while (place >= chosen->per_10000) place -= (chosen++)->per_10000;
    size = static_cast<std::uint32_t>(chosen->from + random() % (chosen->to - chosen->from + 1));
  }
  return sizes;
}

// Of this thread, the kernel's part included.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double run(std::uint64_t blocks, Random random) {
  const std::vector<std::uint32_t> sizes = draw_sizes(random);
  std::vector<volatile char*> live(10000, nullptr);
  const double begin = processor_seconds();
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t drawn = random();
    volatile char*& slot = live[drawn % live.size()];
    std::free(const_cast<char*>(slot));
    const std::uint32_t size = sizes[(drawn >> 32) % sizes.size()];
    slot = static_cast<volatile char*>(std::malloc(size));
    if (slot == nullptr) std::abort();
    slot[0] = 1;
    slot[size - 1] = 1;
  }
  const double taken = processor_seconds() - begin;
  for (volatile char* block : live) std::free(const_cast<char*>(block));
  return taken;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::uint64_t blocks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::printf("%.4f\n", run(blocks, Random{0x9e3779b97f4a7c15u * (seed + 1)}));
  MPI_Finalize();
}
