// Neighbourhood collectives of every form on random topologies, against the host's on the same data: cartesian ones
// (also of one or two ranks in a dimension, open and closed), graphs and distributed graphs with parallel edges and
// edges to oneself.
//
//   neighbors TURNS [SEED]      needs PLAIT_SETUP_CALLS=1 PLAIT_HOST=0; exits with 1 where a result differs
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/persistent_form.h"
#include "tests/preload/plan_used.h"

namespace {

using Random = std::mt19937;  // the same on all ranks
int world_rank = 0, world_size = 1;

int below(Random& random, int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); }

// ---- Topologies ----

MPI_Comm make_cartesian(Random& random, std::string& name) {
  const int dimensions = 1 + below(random, 3);
  std::array<int, 3> lengths{}, periods{};
  MPI_Dims_create(world_size, dimensions, lengths.data());
  for (int& period : periods) period = below(random, 2);
  std::shuffle(lengths.begin(), lengths.begin() + dimensions, random);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, dimensions, lengths.data(), periods.data(), 0, &made);
  name = "cart of " + std::to_string(dimensions);
  return made;
}

// Each rank's list: in a graph edges must go both ways.
std::vector<std::vector<int>> random_lists(Random& random, bool both_ways) {
  std::vector<std::vector<int>> lists(static_cast<std::size_t>(world_size));
  for (int edges = below(random, 4 * world_size + 1); edges > 0; --edges) {
    const int from = below(random, world_size), to = below(random, world_size);
    lists[static_cast<std::size_t>(from)].push_back(to);
    if (both_ways && from != to) lists[static_cast<std::size_t>(to)].push_back(from);
  }
  return lists;
}

MPI_Comm make_graph(Random& random, std::string& name) {
  std::vector<int> ends, edges;
  for (const std::vector<int>& list : random_lists(random, true)) {
    edges.insert(edges.end(), list.begin(), list.end());
    ends.push_back(static_cast<int>(edges.size()));
  }
  edges.push_back(0);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Graph_create(MPI_COMM_WORLD, world_size, ends.data(), edges.data(), 0, &made);
  name = "graph";
  return made;
}

MPI_Comm make_distributed(Random& random, std::string& name) {
  const auto lists = random_lists(random, false);
  std::vector<int> sources, destinations = lists[static_cast<std::size_t>(world_rank)];
  for (int from = 0; from < world_size; ++from)
    for (const int to : lists[static_cast<std::size_t>(from)])
      if (to == world_rank) sources.push_back(from);
  const int in = static_cast<int>(sources.size()), out = static_cast<int>(destinations.size());
  Random own(static_cast<unsigned>(world_rank) + random());
  std::shuffle(sources.begin(), sources.end(), own);
  sources.push_back(0);
  destinations.push_back(0);
  const std::vector<int> weights(static_cast<std::size_t>(std::max(in, out)) + 1, 1);
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources.data(), weights.data(), out, destinations.data(),
                                 weights.data(), MPI_INFO_NULL, 0, &made);
  name = "distributed graph";
  return made;
}

struct Edges {
  std::vector<int> sources, destinations;
};

Edges edges_of(MPI_Comm comm) {
  int kind = 0;
  MPI_Topo_test(comm, &kind);
  Edges edges;
  if (kind == MPI_CART) {
    int dimensions = 0;
    MPI_Cartdim_get(comm, &dimensions);
    for (int dimension = 0; dimension < dimensions; ++dimension) {
      int before = 0, after = 0;
      MPI_Cart_shift(comm, dimension, 1, &before, &after);
      edges.sources.insert(edges.sources.end(), {before, after});
    }
    edges.destinations = edges.sources;
  } else if (kind == MPI_GRAPH) {
    int count = 0;
    MPI_Graph_neighbors_count(comm, world_rank, &count);
    edges.sources.resize(static_cast<std::size_t>(count) + 1);
    MPI_Graph_neighbors(comm, world_rank, count, edges.sources.data());
    edges.sources.pop_back();
    edges.destinations = edges.sources;
  } else {
    int in = 0, out = 0, weighted = 0;
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    edges.sources.resize(static_cast<std::size_t>(in) + 1);
    edges.destinations.resize(static_cast<std::size_t>(out) + 1);
    std::vector<int> weights(static_cast<std::size_t>(std::max(in, out)) + 1);
    MPI_Dist_graph_neighbors(comm, in, edges.sources.data(), weights.data(), out, edges.destinations.data(),
                             weights.data());
    edges.sources.pop_back();
    edges.destinations.pop_back();
  }
  return edges;
}

// ---- Data ----

constexpr unsigned char untouched = 0xa5;
MPI_Datatype spread = MPI_DATATYPE_NULL;  // an int in every second place

struct Side {
  MPI_Datatype type = MPI_INT;
  int count = 0;  // of each, where all are alike
  std::vector<int> counts, displacements;
  std::vector<MPI_Aint> byte_displacements;
  std::vector<MPI_Datatype> types;
  std::vector<unsigned char> memory;
};

MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lowest = 0, extent = 0;
  MPI_Type_get_extent(type, &lowest, &extent);
  return extent;
}

// With gaps of a rank's own.
Side make_side(const std::vector<int>& counts, MPI_Datatype type, Random& own) {
  Side side;
  side.type = type;
  side.count = counts.empty() ? 0 : counts.front();
  side.counts = counts;
  const MPI_Aint extent = extent_of(type);
  int next = 0;
  for (const int count : counts) {
    next += below(own, 3);
    side.displacements.push_back(next);
    side.byte_displacements.push_back(next * extent);
    side.types.push_back(type);
    next += count;
  }
  const int alike = static_cast<int>(counts.size()) * side.count;
  side.memory.assign(static_cast<std::size_t>(std::max(next, alike) + 1) * static_cast<std::size_t>(extent), untouched);
  side.displacements.push_back(0);  // never empty
  side.byte_displacements.push_back(0);
  side.types.push_back(type);
  side.counts.push_back(0);
  return side;
}

enum class Kind { allgather, allgatherv, alltoall, alltoallv, alltoallw, count_ };
enum class Form { blocking, posted, persistent, count_ };
constexpr std::array<const char*, 5> kind_names = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};
constexpr std::array<const char*, 3> form_names = {"blocking", "non-blocking", "persistent"};

struct Problem {
  Kind kind;
  Form form;
  MPI_Comm comm;
  Side send, receive;
  bool gives = true;
};

#define PLAIT_ARGUMENTS_AG s, a.count, a.type, r, b.count, b.type
#define PLAIT_ARGUMENTS_AGV s, a.count, a.type, r, b.counts.data(), b.displacements.data(), b.type
#define PLAIT_ARGUMENTS_AV \
  s, a.counts.data(), a.displacements.data(), a.type, r, b.counts.data(), b.displacements.data(), b.type
#define PLAIT_ARGUMENTS_AW                                                                                          \
  s, a.counts.data(), a.byte_displacements.data(), a.types.data(), r, b.counts.data(), b.byte_displacements.data(), \
      b.types.data()
#define PLAIT_CASE(Name, name, kind_name, ...)                                                                        \
  case Kind::kind_name:                                                                                               \
    if (problem.form == Form::blocking) MPI_##Name(__VA_ARGS__, problem.comm);                                        \
    if (problem.form == Form::posted) MPI_I##name(__VA_ARGS__, problem.comm, &request);                               \
    if (problem.form == Form::persistent) PLAIT_PERSISTENT(Name)(__VA_ARGS__, problem.comm, MPI_INFO_NULL, &request); \
    break;

// Two starts of a persistent one. True where Plait carried it.
bool run(Problem& problem) {
  const Side &a = problem.send, &b = problem.receive;
  const unsigned char* s = a.memory.data();
#if defined(OPEN_MPI)
  if (!problem.gives) s = nullptr;  // what nobody gets is not significant, but to MPICH
#endif
  unsigned char* r = problem.receive.memory.data();
  MPI_Request request = MPI_REQUEST_NULL;
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);  // so that a former answer is not taken for this one's
  switch (problem.kind) {
    PLAIT_CASE(Neighbor_allgather, neighbor_allgather, allgather, PLAIT_ARGUMENTS_AG)
    PLAIT_CASE(Neighbor_allgatherv, neighbor_allgatherv, allgatherv, PLAIT_ARGUMENTS_AGV)
    PLAIT_CASE(Neighbor_alltoall, neighbor_alltoall, alltoall, PLAIT_ARGUMENTS_AG)
    PLAIT_CASE(Neighbor_alltoallv, neighbor_alltoallv, alltoallv, PLAIT_ARGUMENTS_AV)
    PLAIT_CASE(Neighbor_alltoallw, neighbor_alltoallw, alltoallw, PLAIT_ARGUMENTS_AW)
    default:
      break;
  }
  for (int start = 0; start < 2 && problem.form == Form::persistent; ++start) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  const bool carried = accelerated() != 0;
  if (problem.form == Form::posted) MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (problem.form == Form::persistent) MPI_Request_free(&request);
  return carried;
}

// How much an edge carries follows from its ranks, so that it does not matter which of several edges meets which.
std::vector<int> counts_of(const std::vector<int>& others, bool outwards, const Problem& problem, unsigned salt,
                           int most) {
  std::vector<int> counts;
  for (const int other : others) {
    const int from = outwards ? world_rank : other, to = outwards ? other : world_rank;
    const bool uneven = problem.kind == Kind::alltoallv || problem.kind == Kind::alltoallw;
    Random edge(salt + (problem.kind == Kind::allgatherv ? static_cast<unsigned>(from) * 7919u
                        : uneven ? static_cast<unsigned>(from) * 7919u + static_cast<unsigned>(to) * 104729u
                                 : 0u));
    counts.push_back(below(edge, most + 1));
  }
  return counts;
}

Problem make_problem(Random& random, MPI_Comm comm, const Edges& edges) {
  Problem problem{.kind = static_cast<Kind>(below(random, static_cast<int>(Kind::count_))),
                  .form = static_cast<Form>(below(random, static_cast<int>(Form::count_))),
                  .comm = comm,
                  .send = {},
                  .receive = {},
                  .gives = true};
  const std::array<int, 5> most = {1, 8, 100, 3000, 40000};
  const int longest = most[static_cast<std::size_t>(below(random, static_cast<int>(most.size())))];
  const unsigned salt = random();
  const bool of_source = problem.kind == Kind::allgather || problem.kind == Kind::allgatherv;
  Random own(static_cast<unsigned>(world_rank) + random());
  const auto type = [&] { return below(own, 4) == 0 ? spread : MPI_INT; };
  std::vector<int> out = counts_of(edges.destinations, true, problem, salt, longest);
  // What all have alike is known without a neighbour, too.
  const std::vector<int> self = {world_rank};
  const std::vector<int> alike = counts_of(self, true, problem, salt, longest);
  if (of_source) out = alike;
  problem.gives = std::ranges::any_of(edges.destinations, [](int to) { return to != MPI_PROC_NULL; });
  problem.send = make_side(out, type(), own);
  problem.receive = make_side(counts_of(edges.sources, false, problem, salt, longest), type(), own);
  if (problem.kind == Kind::allgather || problem.kind == Kind::alltoall)
    problem.send.count = problem.receive.count = alike.front();
  int value = world_rank * 1000003;
  const std::size_t step = static_cast<std::size_t>(extent_of(problem.send.type));
  for (std::size_t at = 0; at + sizeof value <= problem.send.memory.size(); at += step) {
    std::copy_n(reinterpret_cast<const unsigned char*>(&value), sizeof value, problem.send.memory.data() + at);
    ++value;
  }
  return problem;
}

void enable(int on) {
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "plait_set_enabled")); set != nullptr) set(on);
}

// MPICH 4.0's own alltoallw loses data where a rank has not as many sources as destinations, or several edges to one
// rank. Here it is an alltoallv in other words.
void run_on_host(Problem& problem) {
  const Kind kind = problem.kind;
#if !defined(OPEN_MPI)
  if (kind == Kind::alltoallw) problem.kind = Kind::alltoallv;
#endif
  enable(0);
  run(problem);
  problem.kind = kind;
}

struct Count {
  int calls = 0, carried = 0, wrong = 0;
};

void compare(Random& random, MPI_Comm comm, const Edges& edges, const std::string& name, Count& count) {
  Problem problem = make_problem(random, comm, edges);
  const std::vector<unsigned char> empty = problem.receive.memory;
  MPI_Barrier(MPI_COMM_WORLD);
  run_on_host(problem);
  const std::vector<unsigned char> expected = problem.receive.memory;
  MPI_Barrier(MPI_COMM_WORLD);
  enable(1);
  for (int turn = 0; turn < 2; ++turn) {
    problem.receive.memory = empty;
    ++count.calls;
    if (run(problem)) ++count.carried;
    if (problem.receive.memory == expected) continue;
    if (++count.wrong > 3) continue;
    std::printf("neighbors: rank %d: %s, %s %s: a result differs from the host's\n", world_rank, name.c_str(),
                form_names[static_cast<std::size_t>(problem.form)], kind_names[static_cast<std::size_t>(problem.kind)]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const int turns = argc > 1 ? std::atoi(argv[1]) : 20;
  unsigned seed =
      argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : static_cast<unsigned>(std::time(nullptr));
  MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
  if (world_rank == 0) std::printf("neighbors: seed %u\n", seed);
  Random random(seed);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  Count count;
  for (int turn = 0; turn < turns; ++turn) {
    std::string name;
    MPI_Comm comm = turn % 3 == 0   ? make_cartesian(random, name)
                    : turn % 3 == 1 ? make_graph(random, name)
                                    : make_distributed(random, name);
    // Set up by a blocking call of any length.
    for (int call = 0; call < 2; ++call) {
      std::vector<int> gathered(static_cast<std::size_t>(world_size) * 1024), own(1024);
      MPI_Allgather(own.data(), 1024, MPI_INT, gathered.data(), 1024, MPI_INT, comm);
    }
    const Edges edges = edges_of(comm);
    for (int call = 0; call < 8; ++call) compare(random, comm, edges, name, count);
    MPI_Comm_free(&comm);
  }
  int wrong = 0;
  MPI_Allreduce(&count.wrong, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank == 0)
    std::printf("neighbors: %d of %d calls were carried, %d results differ\n", count.carried, count.calls, wrong);
  MPI_Type_free(&spread);
  const bool lazy = world_size > 1 && count.carried * 2 < count.calls;
  if (lazy) std::printf("neighbors: most calls were the host's\n");
  MPI_Finalize();
  return wrong != 0 || lazy;
}
