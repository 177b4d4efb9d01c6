// Data near and over 2^31 bytes, and displacements beyond them, on two ranks. What is not looked at is never touched,
// so that a rank needs little more than 2 GiB at a time.
#include <mpi.h>
#include <sys/mman.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/preload/plan_used.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20, gib = std::size_t{1} << 30;
constexpr std::size_t sample_step = 1009;  // words between those that are looked at

int rank = 0, ranks = 0, failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  ++failures;
  std::printf("large_counts: wrong: %s, rank %d, %s\n", what, rank, plan_used());
}

// Memory that costs nothing until it is touched.
class Space {
 public:
  explicit Space(std::size_t bytes)
      : bytes_(bytes),
        begin_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (begin_ == MAP_FAILED) std::abort();
  }
  ~Space() { munmap(begin_, bytes_); }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  char* at(std::size_t offset) { return static_cast<char*>(begin_) + offset; }
  std::int64_t* words() { return static_cast<std::int64_t*>(begin_); }

 private:
  std::size_t bytes_;
  void* begin_;
};

std::int64_t value(int owner, std::size_t index) { return static_cast<std::int64_t>(index * 31 + 7) * (owner + 1); }

template <class Visit>
void samples(std::size_t first, std::size_t count, const Visit& visit) {
  for (std::size_t i = 0; i < count; i += sample_step) visit(first + i);
  if (count > 0) visit(first + count - 1);
}

void fill(Space& space, int owner, std::size_t first, std::size_t count) {
  samples(first, count, [&](std::size_t i) { space.words()[i] = value(owner, i); });
}

bool holds(Space& space, int owner, std::size_t first, std::size_t count) {
  bool right = true;
  samples(first, count, [&](std::size_t i) { right &= space.words()[i] == value(owner, i); });
  return right;
}

MPI_Datatype block_of(std::size_t bytes) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  return type;
}

void bcast(MPI_Datatype type, int count, std::size_t bytes, const char* what) {
  Space space(bytes);
  const std::size_t words = bytes / sizeof(std::int64_t);
  if (rank == 1) fill(space, 1, 0, words);
  MPI_Bcast(space.at(0), count, type, 1, MPI_COMM_WORLD);
  check(accelerated(), "no plan");
  check(holds(space, 1, 0, words), what);
}

void moved_data() {
  bcast(MPI_BYTE, INT_MAX, INT_MAX, "bcast of 2^31 - 1 bytes");
  MPI_Datatype block = block_of(mib);
  bcast(block, 2048, 2 * gib, "bcast of 2^31 bytes");
  bcast(block, 2049, 2 * gib + mib, "bcast of more than 2^31 bytes");
  const std::size_t share = 1025 * mib / sizeof(std::int64_t);
  Space space(2 * 1025 * mib);
  fill(space, rank, static_cast<std::size_t>(rank) * share, share);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, space.at(0), 1025, block, MPI_COMM_WORLD);
  check(accelerated(), "no plan");
  check(holds(space, 0, 0, share) && holds(space, 1, share, share), "allgather of more than 2^31 bytes");
  MPI_Type_free(&block);
}

void reductions() {
  constexpr std::size_t words = 2 * gib / sizeof(std::int64_t) + 5;
  Space space(words * sizeof(std::int64_t));
  fill(space, rank, 0, words);
  MPI_Allreduce(MPI_IN_PLACE, space.at(0), static_cast<int>(words), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  check(accelerated(), "no plan");
  // 1 + 2 times what rank 0 has.
  check(holds(space, 2, 0, words), "allreduce of more than 2^31 bytes");
}

// A page every 3 GiB.
void far_apart() {
  constexpr std::size_t page = 4096, extent = 3 * gib, words = page / sizeof(std::int64_t);
  MPI_Datatype dense = block_of(page), far = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(dense, 0, static_cast<MPI_Aint>(extent), &far);
  MPI_Type_commit(&far);
  Space own(page), all(static_cast<std::size_t>(ranks) * extent);
  const std::size_t words_apart = extent / sizeof(std::int64_t);
  const auto right = [&] { return holds(all, 0, 0, words) && holds(all, 1, words_apart, words); };
  const auto at = [&](int owner) { return static_cast<std::size_t>(owner) * words_apart; };
  samples(0, words, [&](std::size_t i) { own.words()[i] = value(rank, at(rank) + i); });
  MPI_Allgather(own.at(0), 1, dense, all.at(0), 1, far, MPI_COMM_WORLD);
  check(accelerated(), "no plan");
  check(right(), "allgather into a type of 3 GiB");
  const int counts[] = {1, 1}, places[] = {0, 1};
  for (int owner = 0; owner < ranks; ++owner) all.words()[at(owner)] = -1;
  MPI_Allgatherv(own.at(0), 1, dense, all.at(0), counts, places, far, MPI_COMM_WORLD);
  check(accelerated(), "no plan");
  check(right(), "allgatherv into a type of 3 GiB");
  own.words()[0] = -1;
  MPI_Scatter(all.at(0), 1, far, own.at(0), 1, dense, 1, MPI_COMM_WORLD);
  check(accelerated(), "no plan");
  check(own.words()[0] == value(rank, at(rank)), "scatter from a type of 3 GiB");
  MPI_Type_free(&far);
  MPI_Type_free(&dense);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  moved_data();
  reductions();
  far_apart();
  if (rank == 0) std::printf("large_counts: %s\n", failures == 0 ? "right" : "wrong");
  MPI_Finalize();
  return failures != 0;
}
