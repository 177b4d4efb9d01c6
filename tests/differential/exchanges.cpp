// Collectives whose messages have lengths of their own, and scans: random calls, first by the host and then by Plait,
// whose outputs must be the same, byte by byte, gaps included.
//
//   exchanges [--seed N] [--budget SECONDS] [--host] [--steady] [--rows N] [--device FILE]
//
// --steady: as programs make them, dozens of calls of one kind on one communicator with lengths alike, from which Plait
// learns how long its slots are and which calls are the host's. --rows: as many such rows, whatever the budget, and
// both must have had some of the calls. --device: some of the buffers of Plait's calls are in that driver's memory.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/differential/binding.h"
#include "tests/differential/device.h"
#include "tests/differential/random.h"

namespace plait::test {
namespace {

enum class Kind { alltoallv, alltoallw, gatherv, scatterv, scan, exscan };
constexpr const char* names[] = {"alltoallv", "alltoallw", "gatherv", "scatterv", "scan", "exscan"};

// ---- Types: each count of them is so many pairs of ints ----

struct Layout {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int per_pair = 1;           // elements
  std::ptrdiff_t extent = 0;  // bytes from element to element
};

constexpr std::size_t layout_count = 6;

MPI_Datatype resized(MPI_Datatype from, MPI_Aint lower_bound, MPI_Aint extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(from, lower_bound, extent, &made);
  MPI_Type_commit(&made);
  if (from != MPI_INT) MPI_Type_free(&from);
  return made;
}

// 0: ints; 1: ints with gaps; 2: pairs with a hole; 3: pairs back to front; 4: pairs that begin before their address;
// 5: contiguous pairs.
Layout make_layout(std::size_t which) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int back_to_front[] = {1, 0}, before[] = {-2, 0};
  switch (which) {
    case 0:
      MPI_Type_contiguous(1, MPI_INT, &type);
      MPI_Type_commit(&type);
      return {type, 2, 4};
    case 1:
      return {resized(MPI_INT, 0, 12), 2, 12};
    case 2:
      MPI_Type_vector(2, 1, 3, MPI_INT, &type);
      return {resized(type, 0, 20), 1, 20};
    case 3:
      MPI_Type_create_indexed_block(2, 1, back_to_front, MPI_INT, &type);
      MPI_Type_commit(&type);
      return {type, 1, 8};
    case 4:
      MPI_Type_create_indexed_block(2, 1, before, MPI_INT, &type);
      return {resized(type, -8, 16), 1, 16};
    default:
      MPI_Type_contiguous(2, MPI_INT, &type);
      MPI_Type_commit(&type);
      return {type, 1, 8};
  }
}

// ---- One side of an exchange ----

// Pieces by rank in memory, in any order, with gaps between them.
struct Side {
  std::vector<std::byte> memory;
  std::vector<int> counts, displacements;
  std::vector<Layout> layouts;
  std::vector<MPI_Datatype> types;
  std::byte* base = nullptr;

  ~Side() {
    for (std::size_t i = 0; i < (same_type ? std::min<std::size_t>(types.size(), 1) : types.size()); ++i)
      MPI_Type_free(&types[i]);
  }
  bool same_type = true;
};

constexpr std::size_t margin = 64;

void lay_out(Side& side, const std::vector<int>& pairs, Random& random, bool in_bytes) {
  side.same_type = !in_bytes;
  Layout common;
  if (!in_bytes) common = make_layout(random.below(layout_count));
  std::vector<std::size_t> order(pairs.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    std::swap(order[i], order[random.below(i + 1)]);
    side.layouts.push_back(in_bytes ? make_layout(random.below(layout_count)) : common);
    side.types.push_back(side.layouts.back().type);
    side.counts.push_back(pairs[i] * side.layouts.back().per_pair);
  }
  side.displacements.resize(pairs.size());
  std::ptrdiff_t next = 0;
  for (const std::size_t piece : order) {
    const std::ptrdiff_t extent = side.layouts[piece].extent;
    next = (next + 8 + extent - 1) / extent;  // one layout begins 8 bytes before its address
    next += static_cast<std::ptrdiff_t>(random.below(3));
    side.displacements[piece] = static_cast<int>(in_bytes ? next * extent : next);
    next = (next + side.counts[piece]) * extent;
  }
  side.memory.resize(static_cast<std::size_t>(next) + 2 * margin);
  side.base = side.memory.data() + margin;
}

void fill(std::vector<std::byte>& memory, std::uint64_t seed) {
  Random random(seed);
  for (std::byte& value : memory) value = static_cast<std::byte>(random.next());
}

// ---- One call ----

struct Trial {
  Kind kind = Kind::alltoallv;
  int rank = 0, ranks = 1, root = 0;
  bool in_place = false, nonblocking = false;
  Side send, receive;
  MPI_Op op = MPI_OP_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int count = 0;
};

int finish(int code, MPI_Request& request) {
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

int call(Trial& t, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  Side &s = t.send, &r = t.receive;
  const bool at_root = t.rank == t.root;
  const auto own = static_cast<std::size_t>(t.kind == Kind::gatherv || t.kind == Kind::scatterv ? t.root : 0);
  const void* in = t.in_place ? MPI_IN_PLACE : s.base;
  void* out = r.base;
  const int n = t.count;
  switch (t.kind) {
    case Kind::alltoallv: {
      const MPI_Datatype a = s.types[0], b = r.types[0];
      if (!t.nonblocking)
        return MPI_Alltoallv(in, s.counts.data(), s.displacements.data(), a, out, r.counts.data(),
                             r.displacements.data(), b, comm);
      return finish(MPI_Ialltoallv(in, s.counts.data(), s.displacements.data(), a, out, r.counts.data(),
                                   r.displacements.data(), b, comm, &request),
                    request);
    }
    case Kind::alltoallw:
      if (!t.nonblocking)
        return MPI_Alltoallw(in, s.counts.data(), s.displacements.data(), s.types.data(), out, r.counts.data(),
                             r.displacements.data(), r.types.data(), comm);
      return finish(MPI_Ialltoallw(in, s.counts.data(), s.displacements.data(), s.types.data(), out, r.counts.data(),
                                   r.displacements.data(), r.types.data(), comm, &request),
                    request);
    case Kind::gatherv: {
      const void* from = at_root && t.in_place ? MPI_IN_PLACE : s.base + s.layouts[own].extent * s.displacements[own];
      if (!t.nonblocking)
        return MPI_Gatherv(from, s.counts[own], s.types[0], out, r.counts.data(), r.displacements.data(), r.types[0],
                           t.root, comm);
      return finish(MPI_Igatherv(from, s.counts[own], s.types[0], out, r.counts.data(), r.displacements.data(),
                                 r.types[0], t.root, comm, &request),
                    request);
    }
    case Kind::scatterv: {
      void* into = at_root && t.in_place ? MPI_IN_PLACE : r.base + r.layouts[own].extent * r.displacements[own];
      if (!t.nonblocking)
        return MPI_Scatterv(s.base, s.counts.data(), s.displacements.data(), s.types[0], into, r.counts[own],
                            r.types[0], t.root, comm);
      return finish(MPI_Iscatterv(s.base, s.counts.data(), s.displacements.data(), s.types[0], into, r.counts[own],
                                  r.types[0], t.root, comm, &request),
                    request);
    }
    case Kind::scan:
      if (!t.nonblocking) return MPI_Scan(in, out, n, t.type, t.op, comm);
      return finish(MPI_Iscan(in, out, n, t.type, t.op, comm, &request), request);
    case Kind::exscan:
      if (!t.nonblocking) return MPI_Exscan(in, out, n, t.type, t.op, comm);
      return finish(MPI_Iexscan(in, out, n, t.type, t.op, comm, &request), request);
  }
  return MPI_ERR_OTHER;
}

// ---- Drawing: all ranks draw the same sizes; layouts and places are each rank's own ----

int draw_length(Random& random, std::size_t regime) {
  if (random.one_in(4)) return 0;
  constexpr std::size_t longest[] = {2, 7, 70, 600, 5000, 40000};
  return static_cast<int>(random.below(longest[regime]) + 1);
}

void draw_exchange(Trial& t, Random& row, Random& all, Random& own) {
  const auto ranks = static_cast<std::size_t>(t.ranks), me = static_cast<std::size_t>(t.rank);
  const std::size_t regime = row.below(row.one_in(8) ? 6 : 5);
  const bool mixed = row.one_in(3);
  std::vector<int> out(ranks), in(ranks);
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to) {
      const int length = draw_length(all, mixed ? all.below(regime + 1) : regime);
      const bool used = t.kind == Kind::alltoallv || t.kind == Kind::alltoallw ||
                        (t.kind == Kind::gatherv ? to : from) == static_cast<std::size_t>(t.root);
      if (from == me && used) out[to] = length;
      if (to == me && used) in[from] = length;
    }
  lay_out(t.send, out, own, t.kind == Kind::alltoallw);
  lay_out(t.receive, in, own, t.kind == Kind::alltoallw);
  t.root = t.root % t.ranks;
  const bool rooted = t.kind == Kind::gatherv || t.kind == Kind::scatterv;
  t.in_place = rooted && all.one_in(3);
}

// f(x) = a x + b, one after the other: not commutative.
void compose(void* left, void* right, int* count, MPI_Datatype*) {
  auto* first = static_cast<std::uint32_t*>(left);
  auto* second = static_cast<std::uint32_t*>(right);
  for (int i = 0; i < 2 * *count; i += 2) {
    second[i + 1] = second[i] * first[i + 1] + second[i + 1];
    second[i] *= first[i];
  }
}

struct Operators {
  MPI_Op compose_op = MPI_OP_NULL;
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  Operators() {
    MPI_Op_create(compose, 0, &compose_op);
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_commit(&pair);
  }
  void free() {
    MPI_Op_free(&compose_op);
    MPI_Type_free(&pair);
  }
};

void draw_scan(Trial& t, const Operators& operators, Random& row, Random& all) {
  constexpr int longest[] = {1, 4, 40, 800, 30000};
  t.count = static_cast<int>(all.below(static_cast<std::size_t>(longest[row.below(5)]) + 1));
  t.in_place = all.one_in(3);
  std::size_t element = 4;
  switch (all.below(4)) {
    case 0:
      t.type = MPI_UNSIGNED, t.op = MPI_SUM;
      break;
    case 1:
      t.type = MPI_INT, t.op = MPI_MIN;
      break;
    case 2:
      t.type = MPI_UINT64_T, t.op = MPI_PROD, element = 8;
      break;
    default:
      t.type = operators.pair, t.op = operators.compose_op, element = 8;
  }
  const std::size_t bytes = static_cast<std::size_t>(t.count) * element + 2 * margin;
  for (Side* side : {&t.send, &t.receive}) {
    side->memory.resize(bytes);
    side->base = side->memory.data() + margin;
  }
}

// ---- Memory of a device ----

// Whether Plait takes the call, on a communicator that is set up for all lengths; the host knows no such memory.
bool is_plaits(const Trial& t) {
  constexpr std::size_t most_prefix_bytes = 64 * 1024;
  if (t.kind < Kind::scan) return true;
  const bool user = t.op != MPI_SUM && t.op != MPI_MIN && t.op != MPI_PROD;
  const std::size_t bytes = t.send.memory.size() * static_cast<std::size_t>(t.ranks);
  return bytes <= most_prefix_bytes && !(user && t.nonblocking);
}

int call_with_device(Trial& t, MPI_Comm comm, Random& own) {
  std::optional<DeviceCopy> copies[2];
  Side* const sides[] = {&t.send, &t.receive};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!device_loaded() || !is_plaits(t) || own.one_in(2)) continue;
    copies[i].emplace(sides[i]->memory);
    sides[i]->base = copies[i]->address_of(sides[i]->base);
  }
  const int code = call(t, comm);
  for (const std::optional<DeviceCopy>& copy : copies)
    if (copy.has_value()) copy->bring_back();
  return code;
}

// ---- Comparing ----

struct Run {
  std::uint64_t seed;
  int trial;
  int alike = 1;  // so many trials in a row
  int rows = 0;   // that are expected; 0: by the budget
  int failures = 0, here = 0, on_host = 0;
  // The same for all trials of a row.
  std::uint64_t of_row(std::uint64_t what) const {
    return derive(seed, what, static_cast<std::uint64_t>(trial / alike));
  }
};

void complain(Run& run, const Trial& t, const std::string& what) {
  if (++run.failures > 3) return;
  std::fprintf(stderr, "exchanges: seed %llu trial %d rank %d of %d: %s%s%s root %d count %d: %s\n",
               static_cast<unsigned long long>(run.seed), run.trial, t.rank, t.ranks, t.nonblocking ? "i" : "",
               names[static_cast<int>(t.kind)], t.in_place ? " in place" : "", t.root, t.count, what.c_str());
}

void try_one(Run& run, MPI_Comm comm, const Operators& operators, bool host_only) {
  Trial t;
  MPI_Comm_rank(comm, &t.rank);
  MPI_Comm_size(comm, &t.ranks);
  Random all(derive(run.seed, static_cast<std::uint64_t>(run.trial)));
  Random own(derive(run.seed, static_cast<std::uint64_t>(run.trial), static_cast<std::uint64_t>(t.rank) + 1));
  Random row(run.of_row(78));
  t.kind = static_cast<Kind>(row.below(6));
  if (t.ranks == 1 && t.kind == Kind::alltoallw) return;  // Open MPI 4.1 takes its displacements for elements there
  t.root = static_cast<int>(all.below(static_cast<std::size_t>(t.ranks)));
  t.nonblocking = all.one_in(3);
  if (t.kind >= Kind::scan)
    draw_scan(t, operators, row, all);
  else
    draw_exchange(t, row, all, own);
  fill(t.send.memory, own.next());
  fill(t.receive.memory, own.next());
  const std::vector<std::byte> input = t.send.memory, before = t.receive.memory;

  enable_plait(false);
  const int host_code = call(t, comm);
  const std::vector<std::byte> expected = t.receive.memory;
  std::memcpy(t.receive.memory.data(), before.data(), before.size());
  if (!host_only) enable_plait(true);
  const int code = call_with_device(t, comm, own);
  if (!host_only && plait_present()) ++(last_plan() != std::string_view("host") ? run.here : run.on_host);
  if (code != host_code) complain(run, t, "another code");
  if (t.send.memory != input) complain(run, t, "the input has changed");
  if (t.receive.memory != expected) {
    const auto at = std::ranges::mismatch(t.receive.memory, expected).in1 - t.receive.memory.begin();
    complain(run, t, "the output differs at byte " + std::to_string(at - static_cast<std::ptrdiff_t>(margin)));
  }
}

// Two communicators with ranks in other orders than the world's, beside it.
struct Communicators {
  MPI_Comm all[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
  Communicators() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &all[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &all[2]);
  }
  void free() {
    MPI_Comm_free(&all[1]);
    MPI_Comm_free(&all[2]);
  }
};

int run_all(Run& run, double budget, bool host_only) {
  Operators operators;
  Communicators communicators;
  const double until = MPI_Wtime() + budget;
  int go_on = 1;
  for (run.trial = 0; go_on != 0; ++run.trial) {
    // Both are drawn from the seed, so that all ranks of the world come to the same communicator.
    const std::size_t which = Random(run.of_row(77)).below(3);
    try_one(run, communicators.all[which], operators, host_only);
    if (run.trial % 16 != 15) continue;
    enable_plait(false);
    const bool more = run.rows > 0 ? run.trial + 1 < run.rows * run.alike : MPI_Wtime() < until;
    go_on = more && run.failures == 0 ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &go_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  int sums[3] = {run.failures, run.here, run.on_host}, totals[3] = {0, 0, 0}, rank = 0;
  MPI_Allreduce(sums, totals, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool used = !host_only && plait_present();
  bool right = totals[0] == 0;
  if (run.alike == 1 || run.rows > 0) right &= (totals[1] > 0) == used;
  if (run.rows > 0) right &= (totals[2] > 0) == used;
  if (rank == 0)
    std::printf("exchanges: %d trials, %d calls of ranks run by Plait, %d that it left to the host, %d wrong: %s\n",
                run.trial, totals[1], totals[2], totals[0], right ? "right" : "wrong");
  operators.free();
  communicators.free();
  return right ? 0 : 1;
}

}  // namespace
}  // namespace plait::test

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  plait::test::Run run{.seed = 1, .trial = 0};
  double budget = 5;
  bool host_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--host") host_only = true;
    if (argument == "--steady" || argument == "--rows") run.alike = 96;
    if (i + 1 < argc && argument == "--rows") run.rows = std::atoi(argv[i + 1]);
    if (i + 1 < argc && argument == "--seed") run.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (i + 1 < argc && argument == "--budget") budget = std::atof(argv[i + 1]);
    if (i + 1 < argc && argument == "--device" && !plait::test::load_device(argv[i + 1])) return 3;
  }
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // A communicator of one rank is the host's.
  const int code = plait::test::run_all(run, budget, host_only || ranks == 1);
  MPI_Finalize();
  return code;
}
