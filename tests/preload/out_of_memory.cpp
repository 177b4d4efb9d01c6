// One rank's n-th allocation fails, for n = 1, 2, 3, .. until none does: in the set-up of a communicator, in calls of
// all forms, in the calls of plait.h. Nothing may end the process, all ranks must come back, and what a call that
// returned MPI_SUCCESS has brought must be right. What fails is operator new, which is the program's own: the host's
// memory comes from malloc.
//
//   out_of_memory [seed [every]]      two ranks or more; each scenario in turn, with a sample of the allocations
//   out_of_memory NAME N              the scenario of that name, and its N-th allocation alone
//   out_of_memory init N              allocation N of rank 1 fails within MPI_Init; 0: says how many there are
//   out_of_memory finalize N          likewise within MPI_Finalize
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "plait/plait.h"
#include "plait/plait_mpi.h"

// Of libplait.so, which is not there where the component takes the calls.
#pragma weak plait_set_enabled
#pragma weak plait_reshard_create
#pragma weak plait_reshard_execute
#pragma weak plait_reshard_free
#pragma weak plait_set_plan
#pragma weak plait_set_channels
#pragma weak plait_allreduce_axes

namespace {

// ---- The allocator ----

std::atomic<long> allocations{0};  // since it was armed
std::atomic<long> failing{0};      // the first of them that fails; 0: none
std::atomic<long> in_a_row{1};     // how many do
std::atomic<bool> failed{false};

bool fails() {
  const long after = ++allocations - failing.load();
  if (failing.load() == 0 || after < 0 || after >= in_a_row.load()) return false;
  failed = true;
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails()) return nullptr;
  void* memory = nullptr;
  if (alignment <= alignof(max_align_t)) return std::malloc(bytes);
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

void arm(long n, long row = 1) {
  allocations = 0;
  in_a_row = row;
  failed = false;
  failing = n;
}

bool disarm() {
  failing = 0;
  return failed;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

int rank = 0, ranks = 1;
char doing[128] = "";

void no_end(int) {
  const char text[] = "\nout_of_memory: wrong: no end of ";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  (void)!write(STDERR_FILENO, doing, std::strlen(doing));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(4);
}

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "out_of_memory: wrong: %s: %s, rank %d\n", doing, what, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// ---- What is tried: on a communicator of its own each time ----

constexpr int count = 4096;  // of int, for each pair of ranks
struct Data {
  std::vector<int> given, taken, counts, places;
};
Data data;

int value(int from, int index) { return 1000 * from + index % 997; }

void prepare_data() {
  const auto all = static_cast<std::size_t>(count * ranks);
  data.given.resize(2 * all);
  data.taken.assign(2 * all, -1);
  data.counts.assign(static_cast<std::size_t>(ranks), count);
  data.places.resize(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) data.places[static_cast<std::size_t>(i)] = i * count;
  for (std::size_t i = 0; i < data.given.size(); ++i) data.given[i] = value(rank, static_cast<int>(i));
}

bool is_sum(int length) {
  for (int i = 0; i < length; ++i) {
    int sum = 0;
    for (int from = 0; from < ranks; ++from) sum += value(from, i);
    if (data.taken[static_cast<std::size_t>(i)] != sum) return false;
  }
  return true;
}

// Blocks of all ranks, one after the other; the `shift`-th block of each.
bool is_gathered(int shift) {
  for (int from = 0; from < ranks; ++from)
    for (int i = 0; i < count; ++i)
      if (data.taken[static_cast<std::size_t>(from * count + i)] != value(from, shift * count + i)) return false;
  return true;
}

int small_sum(MPI_Comm comm) { return MPI_Allreduce(data.given.data(), data.taken.data(), 16, MPI_INT, MPI_SUM, comm); }
int large_sum(MPI_Comm comm) {
  return MPI_Allreduce(data.given.data(), data.taken.data(), count, MPI_INT, MPI_SUM, comm);
}
bool small_sum_right() { return is_sum(16); }
bool large_sum_right() { return is_sum(count); }
bool exchange_right() { return is_gathered(rank); }
bool gather_right() { return is_gathered(0); }
bool nothing_to_check() { return true; }

int exchange(MPI_Comm comm) {
  return MPI_Alltoallv(data.given.data(), data.counts.data(), data.places.data(), MPI_INT, data.taken.data(),
                       data.counts.data(), data.places.data(), MPI_INT, comm);
}
int gather_all(MPI_Comm comm) {
  return MPI_Allgatherv(data.given.data(), count, MPI_INT, data.taken.data(), data.counts.data(), data.places.data(),
                        MPI_INT, comm);
}
int posted_sum(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Iallreduce(data.given.data(), data.taken.data(), count, MPI_INT, MPI_SUM, comm, &request);
  return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
}
int posted_exchange(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Ialltoallv(data.given.data(), data.counts.data(), data.places.data(), MPI_INT,
                                   data.taken.data(), data.counts.data(), data.places.data(), MPI_INT, comm, &request);
  return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
}
// A type that is new each time: every other integer.
int typed_broadcast(MPI_Comm comm) {
  std::array<int, 8> places{0, 2, 4, 6, 8, 10, 12, 14};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(8, 1, places.data(), MPI_INT, &type);
  MPI_Type_commit(&type);
  for (std::size_t i = 0; i < 16; ++i) data.taken[i] = rank == 0 ? static_cast<int>(i) : -1;
  const int error = MPI_Bcast(data.taken.data(), 1, type, 0, comm);
  MPI_Type_free(&type);
  return error;
}
bool typed_broadcast_right() {
  for (std::size_t i = 0; i < 16; ++i)
    if (data.taken[i] != (rank == 0 || i % 2 == 0 ? static_cast<int>(i) : -1)) return false;
  return true;
}
void add(void* left, void* right, int* length, MPI_Datatype*) {
  for (int i = 0; i < *length; ++i) static_cast<int*>(right)[i] += static_cast<int*>(left)[i];
}
MPI_Op own_sum = MPI_OP_NULL;
int sum_by_own_operator(MPI_Comm comm) {
  return MPI_Allreduce(data.given.data(), data.taken.data(), count, MPI_INT, own_sum, comm);
}
int persistent_sum(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  int error = PLAIT_PERSISTENT(Allreduce)(data.given.data(), data.taken.data(), count, MPI_INT, MPI_SUM, comm,
                                          MPI_INFO_NULL, &request);
  if (error != MPI_SUCCESS) return error;
  error = MPI_Start(&request);
  if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  return error;
}
int reshard(MPI_Comm comm) {
  const int dims[] = {ranks};
  const std::int64_t shape[] = {ranks, ranks * count};
  plait_reshard plan = PLAIT_RESHARD_NULL;
  int error =
      plait_reshard_create(comm, 1, dims, nullptr, "S0R", 1, dims, nullptr, "RS0", 2, shape, MPI_INT, nullptr, &plan);
  if (error != MPI_SUCCESS) return error;
  error = plait_reshard_execute(plan, data.given.data(), data.taken.data());
  plait_reshard_free(&plan);
  return error;
}
int set_plan(MPI_Comm comm) { return plait_set_plan(comm, "RD.1(chain) BC.1(flat)"); }
int set_channels(MPI_Comm comm) { return plait_set_channels(comm, "shm,mpi"); }
int sum_over_axes(MPI_Comm comm) {
  const int dims[] = {ranks, 1}, axes[] = {0};
  return plait_allreduce_axes(data.given.data(), data.taken.data(), count, MPI_INT, MPI_SUM, comm, 2, dims, 1, axes);
}
int duplicate(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  const int error = MPI_Comm_dup(comm, &made);
  if (error == MPI_SUCCESS) MPI_Comm_free(&made);
  return error;
}

// What comes before the set-up is the host's, and needs no memory of Plait's.
int posted_then_summed(MPI_Comm comm) {
  const int error = posted_sum(comm);
  check(error == MPI_SUCCESS, "an error of what the host could do");
  return large_sum(comm);
}
int unseen(MPI_Comm) { return MPI_SUCCESS; }

const bool has_functions = plait_set_enabled != nullptr;

struct Scenario {
  const char* name;
  int (*before)(MPI_Comm);  // nullptr: the communicator is known, and not set up
  int (*tried)(MPI_Comm);
  bool (*right)();
  bool by_function = false;  // of plait.h
};
constexpr Scenario scenarios[] = {
    {"a short set-up", nullptr, small_sum, small_sum_right},
    {"a set-up", nullptr, large_sum, large_sum_right},
    {"a longer set-up", small_sum, large_sum, large_sum_right},
    {"a first sum", unseen, large_sum, large_sum_right},
    {"a first exchange", unseen, exchange, exchange_right},
    {"a first broadcast of a new type", unseen, typed_broadcast, typed_broadcast_right},
    {"a first posted sum", unseen, posted_then_summed, large_sum_right},
    {"an exchange with its set-up", nullptr, exchange, exchange_right},
    {"a gather with its set-up", nullptr, gather_all, gather_right},
    {"a broadcast of a new type with its set-up", nullptr, typed_broadcast, typed_broadcast_right},
    {"a sum by an operator of the program's with its set-up", nullptr, sum_by_own_operator, large_sum_right},
    {"a sum", exchange, large_sum, large_sum_right},
    {"an exchange", large_sum, exchange, exchange_right},
    {"a gather", exchange, gather_all, gather_right},
    {"a broadcast of a new type", exchange, typed_broadcast, typed_broadcast_right},
    {"a sum by an operator of the program's", exchange, sum_by_own_operator, large_sum_right},
    {"a posted sum", exchange, posted_sum, large_sum_right},
    {"a posted exchange", exchange, posted_exchange, exchange_right},
    {"a persistent sum", exchange, persistent_sum, large_sum_right},
    {"a resharding", nullptr, reshard, exchange_right, true},
    {"a plan by name", exchange, set_plan, nothing_to_check, true},
    {"channels by name", nullptr, set_channels, nothing_to_check, true},
    {"a sum over axes", exchange, sum_over_axes, large_sum_right, true},
    {"a duplicate", exchange, duplicate, nothing_to_check},
};

// What each rank found, on all.
struct Found {
  int error, fell;
};

Found share(const Found& mine) {
  Found all = mine;
  if (has_functions) plait_set_enabled(0);
  MPI_Allreduce(&mine.error, &all.error, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&mine.fell, &all.fell, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (has_functions) plait_set_enabled(1);
  return all;
}

// False once no allocation fails any more.
bool try_with(const Scenario& scenario, long n, long row, int& errors) {
  std::snprintf(doing, sizeof doing, "%s, allocation %ld and %ld more", scenario.name, n, row - 1);
  alarm(60);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (scenario.before != nullptr) check(scenario.before(comm) == MPI_SUCCESS, "an error before");
  int none = 0;
  if (scenario.before == nullptr) MPI_Bcast(&none, 0, MPI_INT, 0, comm);
  std::fill(data.taken.begin(), data.taken.end(), -1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) arm(n, row);
  const int error = scenario.tried(comm);
  const bool fell = disarm();
  if (error == MPI_SUCCESS) check(scenario.right(), "another result");
  const Found all = share({error != MPI_SUCCESS, fell});
  errors += all.error;
  check(all.fell != 0 || all.error == 0, "an error although memory was there");
  MPI_Comm_free(&comm);
  return all.fell != 0;
}

// Each of the first, and then about each hundredth part further: the set-ups have thousands.
void try_from_first_on(const Scenario& scenario, std::mt19937_64& random, bool every, long row) {
  constexpr long each_until = 60;
  int tries = 0, errors = 0;
  long n = 1;
  while (try_with(scenario, n, row, errors)) {
    ++tries;
    n += every || n < each_until ? 1 : 1 + static_cast<long>(random() % static_cast<std::uint64_t>(n / 8));
  }
  if (rank == 0) std::printf("%s: %d tries up to allocation %ld, %d errors\n", scenario.name, tries, n, errors);
  check(tries > 0 || scenario.right == nothing_to_check, "no allocation was seen at all");
}

// Several in a row before the set-up, where the others could not hear of it: the first one has a spare.
void try_all(std::mt19937_64& random, bool every) {
  for (const Scenario& scenario : scenarios) {
    if (scenario.by_function && !has_functions) continue;
    try_from_first_on(scenario, random, every, 1);
    if (scenario.before == unseen) try_from_first_on(scenario, random, every, 4);
  }
}

void try_one(const char* name, long n, long row) {
  int errors = 0;
  for (const Scenario& scenario : scenarios)
    if (std::strcmp(scenario.name, name) == 0) try_with(scenario, n, row, errors);
  if (rank == 0) std::printf("%s: %d errors\n", name, errors);
}

int rank_before_init() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return 0;
}

// All ranks get the same sum, by whatever way, and the job ends.
int run_frame(bool at_init, long n) {
  const bool arms = rank_before_init() == 1;
  std::snprintf(doing, sizeof doing, "%s, allocation %ld", at_init ? "MPI_Init" : "MPI_Finalize", n);
  alarm(60);
  if (at_init && arms) arm(n);
  MPI_Init(nullptr, nullptr);
  const long seen = allocations;
  if (at_init) disarm();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  prepare_data();
  for (int call = 0; call < 3; ++call) {
    check(large_sum(MPI_COMM_WORLD) == MPI_SUCCESS && large_sum_right(), "a sum");
    check(exchange(MPI_COMM_WORLD) == MPI_SUCCESS && exchange_right(), "an exchange");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (!at_init && arms) arm(n);
  MPI_Finalize();
  if (rank == 1) std::printf("allocations %ld\n", at_init ? seen : allocations.load());
  if (rank == 0) std::printf("out_of_memory: right\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGALRM, no_end);
  const bool at_init = argc > 2 && std::strcmp(argv[1], "init") == 0;
  if (at_init || (argc > 2 && std::strcmp(argv[1], "finalize") == 0)) return run_frame(at_init, std::atol(argv[2]));
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : std::random_device()();
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  prepare_data();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // which Open MPI asks about generalized requests
  MPI_Op_create(add, 1, &own_sum);
  const bool every = argc > 2 && std::strcmp(argv[2], "every") == 0;
  argc > 2 && !every ? try_one(argv[1], std::atol(argv[2]), argc > 3 ? std::atol(argv[3]) : 1) : try_all(random, every);
  MPI_Op_free(&own_sum);
  if (rank == 0) std::printf("out_of_memory: right\n");
  MPI_Finalize();
  return 0;
}
