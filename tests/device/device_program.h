// A job of the tests of devices, from its start to its end.
#pragma once

#include <mpi.h>

#include "tests/device/cuda.h"

namespace plait::test {

inline int rank = 0, ranks = 1;  // in MPI_COMM_WORLD

// The driver is there before MPI, as in programs that are linked with it. Returns what `run` returns.
inline int run_job(int argc, char** argv, int (*run)(int, char**)) {
  load_driver(argc, argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int status = run(argc, argv);
  MPI_Finalize();
  return status;
}

}  // namespace plait::test
