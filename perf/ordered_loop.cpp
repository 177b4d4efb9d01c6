// How long allreduces and reductions take, for PLAIT_REPRODUCIBLE unset, run or order (docs/reproducible.md).
//
//   ordered_loop BYTES CALLS [float]   prints a line of JSON on rank 0, of the slowest rank: the median of CALLS calls
//   of
//                                      each; of 4 KiB and less their mean, one after the other
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

template <class Call>
double median_us(int calls, Call&& call) {
  std::vector<double> times;
  for (int i = 0; i < calls + calls / 4 + 2; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call();
    double took = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= calls / 4 + 2) times.push_back(took * 1e6);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// Calls one after the other, as a program has them.
template <class Call>
double mean_us(int calls, Call&& call) {
  for (int i = 0; i < calls / 4 + 2; ++i) call();
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double took = (MPI_Wtime() - begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8;
  const int calls = argc > 2 ? std::atoi(argv[2]) : 20;
  const bool narrow = argc > 3 && std::string(argv[3]) == "float";
  const std::size_t element = narrow ? sizeof(float) : sizeof(double);
  const int count = static_cast<int>(bytes / element);
  const MPI_Datatype type = narrow ? MPI_FLOAT : MPI_DOUBLE;
  // Memory that the other ranks of a node reach, as far as Plait offers that.
  void *send = nullptr, *receive = nullptr;
  MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &send);
  MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &receive);
  for (int i = 0; i < count; ++i) {
    const double value = (i % 2 == 0 ? 1 : -1) * (1.0 + 1.0 / (i + 1 + rank));
    if (narrow)
      static_cast<float*>(send)[i] = static_cast<float>(value);
    else
      static_cast<double*>(send)[i] = value;
  }
  const auto allreduce = [&] { MPI_Allreduce(send, receive, count, type, MPI_SUM, MPI_COMM_WORLD); };
  const auto reduce = [&] { MPI_Reduce(send, receive, count, type, MPI_SUM, 0, MPI_COMM_WORLD); };
  const bool small = bytes <= 4096;
  const double all = small ? mean_us(calls, allreduce) : median_us(calls, allreduce);
  const double one = small ? mean_us(calls, reduce) : median_us(calls, reduce);
  if (rank == 0)
    std::printf("{\"bytes\": %zu, \"type\": \"%s\", \"allreduce_us\": %.3f, \"reduce_us\": %.3f}\n", bytes,
                narrow ? "float" : "double", all, one);
  MPI_Free_mem(send);
  MPI_Free_mem(receive);
  MPI_Finalize();
}
