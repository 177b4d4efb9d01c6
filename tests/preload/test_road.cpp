// No rank ever takes another road than the rest, and whatever road it is, the data are right.
//
// Every collective is called with random arguments that MPI allows to differ between the ranks: datatypes, layouts,
// gaps, displacements, MPI_BOTTOM, garbage where an argument is not significant. After each call the ranks compare what
// carried it, and each compares every element of its buffer with the value it must have, and every gap with what was
// there before. Runs with and without the plugin; without it, it tests itself against the host.
//
// Open MPI's own algorithms do not bear datatypes that differ between the ranks: some choose by the size of the local
// one (allgatherv) or cut by it (bcast), and then wait for each other for ever. So layouts differ only once a
// communicator is accelerated, and the plugin must be told to leave it nothing then: PLAIT_HOST=0. Nor does its copy of
// a rank's own part always get from one layout to another, and loses long data; so both sides of a call have one layout
// until then, and at most a thousand elements.
//
//   mpirun -n N test_road [calls] [seed]
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/preload/layouts.h"

namespace {

using road::Layout;
using road::Random;
using road::Side;

// The plugin's answer; "host" when it is not there.
std::string last_plan() {
  using Ask = const char* (*)();
  static const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, "plait_last_plan"));
  return ask != nullptr ? ask() : "host";
}

struct Run {
  MPI_Comm comm;
  int rank, ranks;
  Random agreed;   // draws the same on all ranks
  Random own;      // draws for this rank alone
  Random layouts;  // draws the layouts of the current call
  std::uint64_t layout_seed = 0;
  std::uint64_t call = 0;
  std::string what;  // of the current call
  int failures = 0;
  std::map<std::string, int> plans;

  // Whether the current call must be a simple one. MPICH 4.0's own copies lose data between layouts with holes, its
  // reductions read from MPI_IN_PLACE and get derived types wrong, and its allgatherv of one rank overlooks the
  // displacement.
  bool is_plain() const {
#ifdef MPICH_VERSION
    return !accelerated();
#else
    return false;
#endif
  }

  bool accelerated() const { return !plans.empty() && (plans.size() > 1 || plans.begin()->first != "host"); }
  void fail(const std::string& why) {
    if (++failures <= 5)
      std::fprintf(stderr, "rank %d of %d, call %llu, %s: %s\n", rank, ranks, static_cast<unsigned long long>(call),
                   what.c_str(), why.c_str());
  }
};

// Element `index` of what `rank` gives to `peer` in the current call; small enough for every type.
std::uint64_t value(const Run& run, int rank, int peer, std::size_t index) {
  std::uint64_t x =
      run.call * 1000003 + static_cast<std::uint64_t>(rank) * 8191 + static_cast<std::uint64_t>(peer) * 131 + index * 7;
  x ^= x >> 15;
  return x * 2654435761u >> 7 & 0x7f;
}

void expect(Run& run, const Side& side, std::size_t element, std::uint64_t wanted) {
  const std::uint64_t got = side.get(element);
  if (got != wanted)
    run.fail("element " + std::to_string(element) + " is " + std::to_string(got) + ", not " + std::to_string(wanted));
}

void expect_gaps(Run& run, const Side& side) {
  if (!side.gaps_untouched()) run.fail("bytes between the elements were written");
}

// ---- Moving data: `elements` of one basic type from or to each rank ----

struct Movement {
  MPI_Datatype basic;
  std::size_t elements;
  int root;
  bool in_place;
};

Movement draw_movement(Run& run) {
  static const std::array<MPI_Datatype, 6> basics = {MPI_INT, MPI_DOUBLE, MPI_BYTE, MPI_SHORT, MPI_LONG, MPI_FLOAT};
  static const std::array<std::size_t, 14> sizes = {0, 1, 2, 3, 5, 8, 24, 60, 97, 256, 1000, 4096, 10000, 30000};
  const std::size_t most = run.accelerated() ? sizes.back() : 1000;
  return {.basic = basics[run.agreed.below(basics.size())],
          .elements = std::min(most, sizes[run.agreed.below(sizes.size())]),
          .root = static_cast<int>(run.agreed.below(static_cast<std::size_t>(run.ranks))),
          .in_place = run.agreed.below(3) == 0};
}

Layout plain(MPI_Datatype basic) {
  int bytes = 0;
  MPI_Type_size(basic, &bytes);
  return Layout::of(basic, basic, {0}, bytes);
}

// A layout of this rank's own choice for `elements`, `segments` times.
Side own_side(Run& run, const Movement& movement, int segments = 1) {
  Random again(run.layout_seed);
  Random& random = run.accelerated() ? run.layouts : again;
  if (run.is_plain())
    return Side(plain(movement.basic).times(static_cast<int>(movement.elements)), static_cast<std::size_t>(segments),
                random);
  return Side(Layout::draw(random, movement.basic, movement.elements), static_cast<std::size_t>(segments), random);
}

void fill(Run& run, Side& side, std::size_t first, std::size_t count, int rank, int peer) {
  for (std::size_t i = 0; i < count; ++i) side.set(first + i, value(run, rank, peer, i));
}

void expect_segment(Run& run, const Side& side, std::size_t first, std::size_t count, int rank, int peer) {
  for (std::size_t i = 0; i < count; ++i) expect(run, side, first + i, value(run, rank, peer, i));
}

void call_bcast(Run& run) {
  const Movement m = draw_movement(run);
  Side data = own_side(run, m);
  if (run.rank == m.root) fill(run, data, 0, m.elements, m.root, 0);
  MPI_Bcast(data.address(), data.count(), data.type(), m.root, run.comm);
  expect_segment(run, data, 0, m.elements, m.root, 0);
  expect_gaps(run, data);
}

// What a rank passes where MPI looks at nothing.
struct Garbage {
  void* address = reinterpret_cast<void*>(0x10);
  int count = -7;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

void call_gather(Run& run, bool to_all) {
  const Movement m = draw_movement(run);
  const bool receives = to_all || run.rank == m.root;
  const bool in_place = m.in_place && receives;
  const std::size_t own = static_cast<std::size_t>(run.rank) * m.elements;
  Side send = own_side(run, m), receive = own_side(run, m, run.ranks);
  const Garbage none;
  if (in_place)
    fill(run, receive, own, m.elements, run.rank, 0);
  else
    fill(run, send, 0, m.elements, run.rank, 0);
  const void* from = in_place ? MPI_IN_PLACE : send.address();
  const int from_count = in_place ? none.count : send.count();
  const MPI_Datatype from_type = in_place ? none.type : send.type();
  if (to_all)
    MPI_Allgather(from, from_count, from_type, receive.address(), receive.count(), receive.type(), run.comm);
  else if (receives)
    MPI_Gather(from, from_count, from_type, receive.address(), receive.count(), receive.type(), m.root, run.comm);
  else
    MPI_Gather(from, from_count, from_type, none.address, none.count, none.type, m.root, run.comm);
  for (int rank = 0; receives && rank < run.ranks; ++rank)
    expect_segment(run, receive, static_cast<std::size_t>(rank) * m.elements, m.elements, rank, 0);
  expect_gaps(run, receive);
}

void call_scatter(Run& run) {
  const Movement m = draw_movement(run);
  const bool at_root = run.rank == m.root;
  const bool in_place = m.in_place && at_root;
  Side send = own_side(run, m, run.ranks), receive = own_side(run, m);
  const Garbage none;
  for (int rank = 0; at_root && rank < run.ranks; ++rank)
    fill(run, send, static_cast<std::size_t>(rank) * m.elements, m.elements, m.root, rank);
  void* to = in_place ? MPI_IN_PLACE : receive.address();
  const int to_count = in_place ? none.count : receive.count();
  const MPI_Datatype to_type = in_place ? none.type : receive.type();
  if (at_root)
    MPI_Scatter(send.address(), send.count(), send.type(), to, to_count, to_type, m.root, run.comm);
  else
    MPI_Scatter(none.address, none.count, none.type, to, to_count, to_type, m.root, run.comm);
  if (in_place)
    expect_segment(run, send, static_cast<std::size_t>(m.root) * m.elements, m.elements, m.root, m.root);
  else
    expect_segment(run, receive, 0, m.elements, m.root, run.rank);
  expect_gaps(run, send);
  expect_gaps(run, receive);
}

void call_alltoall(Run& run) {
  Movement m = draw_movement(run);
  m.elements = std::min<std::size_t>(m.elements, 4096);
  Side send = own_side(run, m, run.ranks), receive = own_side(run, m, run.ranks);
  Side& from = m.in_place ? receive : send;
  for (int rank = 0; rank < run.ranks; ++rank)
    fill(run, from, static_cast<std::size_t>(rank) * m.elements, m.elements, run.rank, rank);
  const Garbage none;
  MPI_Alltoall(m.in_place ? MPI_IN_PLACE : send.address(), m.in_place ? none.count : send.count(),
               m.in_place ? none.type : send.type(), receive.address(), receive.count(), receive.type(), run.comm);
  for (int rank = 0; rank < run.ranks; ++rank)
    expect_segment(run, receive, static_cast<std::size_t>(rank) * m.elements, m.elements, rank, run.rank);
  expect_gaps(run, receive);
}

// Segments of different lengths (in units that every rank's own type divides), with gaps and in any order in memory.
void call_allgatherv(Run& run) {
  const Movement m = draw_movement(run);
  const std::size_t most = 1 + run.agreed.below(4), unit = run.is_plain() ? 1 : most;
  std::vector<int> units(static_cast<std::size_t>(run.ranks));
  for (int& count : units)
    count = static_cast<int>(run.agreed.below(3) == 0 ? 0 : run.agreed.below(m.elements / unit + 1));
  const auto self = static_cast<std::size_t>(run.rank);
  const std::size_t own = static_cast<std::size_t>(units[self]) * unit;

  const Layout layout = run.is_plain() ? plain(m.basic) : Layout::draw_unit(run.layouts, m.basic, unit);
  std::vector<int> displacements = road::draw_displacements(run.own, units);
  if (run.is_plain() && run.ranks == 1) displacements = {0};
  Side receive(layout, road::end_of(units, displacements), run.own);
  Side send(run.accelerated() ? Layout::draw(run.own, m.basic, own) : layout.times(units[self]), 1, run.own);
  const auto first = [&](std::size_t rank) { return static_cast<std::size_t>(displacements[rank]) * unit; };
  if (m.in_place)
    fill(run, receive, first(self), own, run.rank, 0);
  else
    fill(run, send, 0, own, run.rank, 0);
  const Garbage none;
  MPI_Allgatherv(m.in_place ? MPI_IN_PLACE : send.address(), m.in_place ? none.count : send.count(),
                 m.in_place ? none.type : send.type(), receive.address(), units.data(), displacements.data(),
                 receive.type(), run.comm);
  for (std::size_t rank = 0; rank < units.size(); ++rank)
    expect_segment(run, receive, first(rank), static_cast<std::size_t>(units[rank]) * unit, static_cast<int>(rank), 0);
  expect_gaps(run, receive);
}

// ---- Reductions ----

// Affine maps x -> a x + b of the integers modulo 251, as pairs of bytes-in-ints: composing them is associative, not
// commutative, and exact.
void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(*type, &lower_bound, &extent);
  for (int i = 0; i < *count; ++i) {
    int left[2], right[2];
    const std::ptrdiff_t second = extent == 2 * sizeof(int) ? sizeof(int) : 2 * sizeof(int);
    char* a = static_cast<char*>(in) + i * extent;
    char* b = static_cast<char*>(inout) + i * extent;
    std::memcpy(&left[0], a, sizeof(int));
    std::memcpy(&left[1], a + second, sizeof(int));
    std::memcpy(&right[0], b, sizeof(int));
    std::memcpy(&right[1], b + second, sizeof(int));
    const int product = left[0] * right[0] % 251, sum = (left[0] * right[1] + left[1]) % 251;
    std::memcpy(b, &product, sizeof(int));
    std::memcpy(b + second, &sum, sizeof(int));
  }
}

struct Reduction {
  Layout layout;  // of one element
  MPI_Op op = MPI_SUM;
  int words = 1;  // basic elements in an element
  std::size_t count = 1;
  int root = 0;
  bool in_place = false;
};

struct Operators {
  MPI_Op compose = MPI_OP_NULL;
  MPI_Datatype dense = MPI_DATATYPE_NULL, sparse = MPI_DATATYPE_NULL;
};
Operators operators;

Reduction draw_reduction(Run& run) {
  static const std::array<std::size_t, 10> counts = {0, 1, 2, 3, 7, 64, 333, 1024, 5000, 20000};
  static const std::array<MPI_Op, 6> ops = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_BAND, MPI_BOR};
  Reduction reduction;
  reduction.count = counts[run.agreed.below(counts.size())];
  reduction.root = static_cast<int>(run.agreed.below(static_cast<std::size_t>(run.ranks)));
  reduction.in_place = run.agreed.below(3) == 0 && !run.is_plain();
  const std::size_t drawn = run.agreed.below(8), kind = run.is_plain() ? 7 : drawn;
  if (kind == 0) {
    reduction.op = operators.compose;
    reduction.layout = Layout::of(operators.dense, MPI_INT, {0, sizeof(int)}, 2 * sizeof(int));
    reduction.words = 2;
  } else if (kind == 1) {
    reduction.op = operators.compose;
    reduction.layout = Layout::of(operators.sparse, MPI_INT, {0, 2 * sizeof(int)}, 4 * sizeof(int));
    reduction.words = 2;
  } else if (kind <= 3) {
    reduction.op = ops[run.agreed.below(3)];
    reduction.layout = Layout::of(MPI_DOUBLE, MPI_DOUBLE, {0}, sizeof(double));
  } else {
    reduction.op = ops[run.agreed.below(ops.size())];
    reduction.layout = Layout::of(MPI_INT, MPI_INT, {0}, sizeof(int));
  }
  return reduction;
}

std::uint64_t combine(MPI_Op op, std::uint64_t a, std::uint64_t b) {
  if (op == MPI_SUM) return a + b;
  if (op == MPI_MAX) return std::max(a, b);
  if (op == MPI_MIN) return std::min(a, b);
  if (op == MPI_BXOR) return a ^ b;
  return op == MPI_BAND ? a & b : a | b;
}

// The words of element `index` of the whole reduction over all ranks, in rank order.
std::array<std::uint64_t, 2> reduced(const Run& run, const Reduction& r, std::size_t index) {
  const auto word = [&](int rank, std::size_t w) {
    return value(run, rank, 0, index * static_cast<std::size_t>(r.words) + w);
  };
  std::array<std::uint64_t, 2> result = {word(0, 0), r.words > 1 ? word(0, 1) : 0};
  for (int rank = 1; rank < run.ranks; ++rank) {
    if (r.words == 1)
      result[0] = combine(r.op, result[0], word(rank, 0));
    else
      result = {result[0] * word(rank, 0) % 251, (result[0] * word(rank, 1) + result[1]) % 251};
  }
  return result;
}

void expect_reduced(Run& run, const Reduction& r, const Side& side, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto wanted = reduced(run, r, first + i);
    for (std::size_t w = 0; w < static_cast<std::size_t>(r.words); ++w)
      expect(run, side, i * static_cast<std::size_t>(r.words) + w, wanted[w]);
  }
  expect_gaps(run, side);
}

void call_allreduce(Run& run) {
  const Reduction r = draw_reduction(run);
  Side send(r.layout, r.count, run.own), receive(r.layout, r.count, run.own);
  Side& from = r.in_place ? receive : send;
  fill(run, from, 0, r.count * static_cast<std::size_t>(r.words), run.rank, 0);
  MPI_Allreduce(r.in_place ? MPI_IN_PLACE : send.address(), receive.address(), static_cast<int>(r.count), send.type(),
                r.op, run.comm);
  expect_reduced(run, r, receive, 0, r.count);
}

void call_reduce(Run& run) {
  const Reduction r = draw_reduction(run);
  const bool at_root = run.rank == r.root;
  const bool in_place = r.in_place && at_root;
  Side send(r.layout, r.count, run.own), receive(r.layout, r.count, run.own);
  Side& from = in_place ? receive : send;
  fill(run, from, 0, r.count * static_cast<std::size_t>(r.words), run.rank, 0);
  void* to = at_root ? receive.address() : reinterpret_cast<void*>(0x10);
  MPI_Reduce(in_place ? MPI_IN_PLACE : send.address(), to, static_cast<int>(r.count), send.type(), r.op, r.root,
             run.comm);
  if (at_root) expect_reduced(run, r, receive, 0, r.count);
}

void call_reduce_scatter(Run& run, bool block) {
  const Reduction r = draw_reduction(run);
  std::vector<int> counts(static_cast<std::size_t>(run.ranks), static_cast<int>(r.count));
  if (!block)
    for (int& count : counts) count = static_cast<int>(run.agreed.below(3) == 0 ? 0 : run.agreed.below(r.count + 1));
  std::size_t all = 0, first = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    if (static_cast<int>(rank) == run.rank) first = all;
    all += static_cast<std::size_t>(counts[rank]);
  }
  const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(run.rank)]);
  Side send(r.layout, all, run.own), receive(r.layout, r.in_place ? all : own, run.own);
  Side& from = r.in_place ? receive : send;
  fill(run, from, 0, all * static_cast<std::size_t>(r.words), run.rank, 0);
  const void* source = r.in_place ? MPI_IN_PLACE : send.address();
  if (block)
    MPI_Reduce_scatter_block(source, receive.address(), static_cast<int>(r.count), send.type(), r.op, run.comm);
  else
    MPI_Reduce_scatter(source, receive.address(), counts.data(), send.type(), r.op, run.comm);
  expect_reduced(run, r, receive, first, own);
}

// ---- The road ----

struct Kind {
  const char* name;
  void (*call)(Run&);
};
const std::array<Kind, 11> kinds = {{
    {"barrier", [](Run& run) { MPI_Barrier(run.comm); }},
    {"bcast", call_bcast},
    {"reduce", call_reduce},
    {"allreduce", call_allreduce},
    {"allgather", [](Run& run) { call_gather(run, true); }},
    {"allgatherv", call_allgatherv},
    {"gather", [](Run& run) { call_gather(run, false); }},
    {"scatter", call_scatter},
    {"alltoall", call_alltoall},
    {"reduce_scatter_block", [](Run& run) { call_reduce_scatter(run, true); }},
    {"reduce_scatter", [](Run& run) { call_reduce_scatter(run, false); }},
}};

// By point-to-point messages, which no binding touches.
void compare_roads(Run& run, const std::string& plan) {
  std::array<char, 128> mine{}, first{};
  std::snprintf(mine.data(), mine.size(), "%s", plan.c_str());
  first = mine;
  const int bytes = static_cast<int>(mine.size());
  for (int rank = 1; run.rank == 0 && rank < run.ranks; ++rank)
    MPI_Send(mine.data(), bytes, MPI_CHAR, rank, 5, run.comm);
  if (run.rank != 0) MPI_Recv(first.data(), bytes, MPI_CHAR, 0, 5, run.comm, MPI_STATUS_IGNORE);
  if (mine != first) run.fail(std::string("took ") + mine.data() + " while rank 0 took " + first.data());
}

void one_call(Run& run) {
  ++run.call;
  const Kind& kind = kinds[run.agreed.below(kinds.size())];
  run.what = kind.name;
  run.layout_seed = run.agreed.next();
  run.layouts = Random(run.accelerated() ? run.own.next() : run.layout_seed);
  kind.call(run);
  const std::string plan = last_plan();
  ++run.plans[plan];
  compare_roads(run, plan);
}

int run_on(MPI_Comm comm, std::uint64_t seed, int calls, int* accelerated) {
  Run run{.comm = comm,
          .rank = 0,
          .ranks = 0,
          .agreed = Random(seed),
          .own = Random(0),
          .layouts = Random(0),
          .what = {},
          .plans = {}};
  MPI_Comm_rank(comm, &run.rank);
  MPI_Comm_size(comm, &run.ranks);
  run.own = Random(seed * 7919 + static_cast<std::uint64_t>(run.rank) + 1);
  for (int call = 0; call < calls; ++call) one_call(run);
  for (const auto& [plan, times] : run.plans)
    if (plan != "host") *accelerated += times;
  return run.failures;
}

void make_operators() {
  MPI_Op_create(compose, 0, &operators.compose);
  MPI_Type_contiguous(2, MPI_INT, &operators.dense);
  MPI_Type_commit(&operators.dense);
  MPI_Datatype apart = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &apart);
  MPI_Type_create_resized(apart, 0, 4 * sizeof(int), &operators.sparse);
  MPI_Type_commit(&operators.sparse);
  MPI_Type_free(&apart);
}

void free_operators() {
  MPI_Op_free(&operators.compose);
  MPI_Type_free(&operators.dense);
  MPI_Type_free(&operators.sparse);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int calls = argc > 1 ? std::atoi(argv[1]) : 600;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()();
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0)
    std::printf("test_road: %d calls a communicator, seed %llu\n", calls, static_cast<unsigned long long>(seed));
  make_operators();

  int accelerated = 0;
  int failures = run_on(MPI_COMM_WORLD, seed, calls, &accelerated);
  MPI_Comm reversed = MPI_COMM_NULL, halves = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
  failures += run_on(reversed, seed + 1, calls / 4, &accelerated);
  failures += run_on(halves, seed + 2, calls / 4, &accelerated);
  failures += run_on(MPI_COMM_SELF, seed + 3, calls / 8, &accelerated);
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&halves);
  free_operators();

  int all = 0;
  MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("test_road: %d failures, %d calls accelerated on rank 0\n", all, accelerated);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
