// A plan of a resharding that has run once allocates nothing when it runs again, blocking and not, on any rank: in long
// rows, in columns of a byte, within one rank, with every strategy.
//
// Counts the calls of operator new in the process; the host MPI's own memory comes from malloc.
//
//   reshard_memory [executions]
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plait/reshard.hpp"
#include "tests/tl/allocations.h"

namespace {

struct Case {
  plait::ReshardSide source, destination;
  std::vector<std::int64_t> shape;
  std::string options;
};

struct Counts {
  std::size_t made = 0, blocking = 0, by_request = 0;
};

Counts count(const Case& one, int executions) {
  Counts counts;
  std::size_t before = plait::tl::allocations();
  plait::Reshard plan(MPI_COMM_WORLD, one.source, one.destination, one.shape, MPI_BYTE, one.options);
  counts.made = plait::tl::allocations() - before;
  std::vector<std::byte> source(plan.source_elements()), destination(plan.destination_elements());
  const auto run = [&] { plan.execute(source.data(), destination.data()); };
  const auto run_by_request = [&] {
    MPI_Request request = plan.start(source.data(), destination.data());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  const auto repeated = [&](const auto& execute) {
    execute();
    MPI_Barrier(MPI_COMM_WORLD);
    before = plait::tl::allocations();
    for (int i = 0; i < executions; ++i) execute();
    return plait::tl::allocations() - before;
  };
  counts.blocking = repeated(run);
  counts.by_request = repeated(run_by_request);
  MPI_Barrier(MPI_COMM_WORLD);
  return counts;
}

std::vector<Case> cases(int ranks) {
  const int half = std::max(ranks / 2, 1);
  const plait::ReshardSide rows{{half}, "S0R", {}}, columns{{half}, "RS0", {}}, all{{ranks}, "RR", {}};
  plait::ReshardSide last_rows = rows, last_columns = columns;
  for (int rank = ranks - half; rank < ranks; ++rank) {
    last_rows.ranks.push_back(rank);
    last_columns.ranks.push_back(rank);
  }
  std::vector<Case> made;
  for (const char* strategy : {"broadcast", "send-recv", "local-allgather", "global-allgather"}) {
    const std::string options = std::string("strategy=") + strategy;
    made.push_back({rows, last_columns, {4096, 512}, options});
    made.push_back({columns, last_rows, {1 << 18, half}, options});
    made.push_back({rows, all, {1 << 10, 1 << 10}, options});
  }
  made.push_back({{{1}, "RR", {0}}, {{1}, "RR", {0}}, {64, 64}, ""});
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1, failures = 0, counted = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int executions = argc > 1 ? std::atoi(argv[1]) : 20;
  for (const Case& one : cases(ranks)) {
    const Counts found = count(one, executions);
    counted += found.made > 0 ? 1 : 0;
    if (found.blocking + found.by_request == 0) continue;
    ++failures;
    std::printf("rank %d: wrong: %s to %s %s: %zu allocations in %d executions, %zu by request\n", rank,
                one.source.spec.c_str(), one.destination.spec.c_str(), one.options.c_str(), found.blocking, executions,
                found.by_request);
  }
  // Where the making of a plan allocates nothing either, nobody counts.
  if (counted == 0) {
    ++failures;
    std::printf("rank %d: wrong: no allocation was seen at all\n", rank);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("reshard_memory: %s\n", failures == 0 ? "right" : "wrong");
  MPI_Finalize();
  return failures != 0;
}
