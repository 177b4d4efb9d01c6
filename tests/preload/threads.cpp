// MPI_THREAD_MULTIPLE: every thread drives communicators of its own, and all of them are set up and used at once.
//   mpirun -n N threads [threads] [rounds]
#include <mpi.h>

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/preload/plan_used.h"

namespace {

struct Worker {
  MPI_Comm comm;
  int seed;
  int rounds;
};

bool allreduce_is_right(const Worker& worker, int round, int rank, int ranks) {
  const std::size_t count = 1 + static_cast<std::size_t>(round * 37 % 3000);
  std::vector<int> in(count), out(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = rank + worker.seed + static_cast<int>(i);
  MPI_Allreduce(in.data(), out.data(), static_cast<int>(count), MPI_INT, MPI_SUM, worker.comm);
  for (std::size_t i = 0; i < count; ++i)
    if (out[i] != ranks * (ranks - 1) / 2 + ranks * (worker.seed + static_cast<int>(i))) return false;
  return true;
}

bool bcast_is_right(const Worker& worker, int round, int rank, int ranks) {
  std::vector<int> data(static_cast<std::size_t>(1 + round * 131 % 20000));
  const int root = round % ranks;
  if (rank == root) std::iota(data.begin(), data.end(), worker.seed);
  MPI_Bcast(data.data(), static_cast<int>(data.size()), MPI_INT, root, worker.comm);
  return data.front() == worker.seed && data.back() == worker.seed + static_cast<int>(data.size()) - 1;
}

// The requests of all threads are of one communicator; each thread starts its own when it likes.
class Persistent {
 public:
  explicit Persistent(MPI_Comm comm) {
    MPI_Comm_size(comm, &ranks_);
    MPI_Comm_rank(comm, &rank_);
    PLAIT_PERSISTENT(Allreduce)(&mine_, &sum_, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request_);
  }
  bool is_right(int value) {
    mine_ = rank_ + value;
    MPI_Start(&request_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    return sum_ == ranks_ * (ranks_ - 1) / 2 + ranks_ * value;
  }
  void free() {
#if !defined(MPICH_VERSION)  // 4.0 cannot
    MPI_Request_free(&request_);
#endif
  }

 private:
  int rank_ = 0, ranks_ = 0, mine_ = 0, sum_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Half of the rounds on a communicator that is made, set up and freed while the other threads work.
void work(Worker worker, Persistent& persistent, std::atomic<int>& wrong, std::atomic<int>& by_plan) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(worker.comm, &rank);
  MPI_Comm_size(worker.comm, &ranks);
  const MPI_Comm parent = worker.comm;
  for (int round = 0; round < worker.rounds; ++round) {
    const bool fresh = round % 20 == 10;
    if (fresh) MPI_Comm_dup(parent, &worker.comm);
    for (int call = 0; call < (fresh ? 6 : 1); ++call) {
      if (!allreduce_is_right(worker, round, rank, ranks) || !bcast_is_right(worker, round, rank, ranks)) ++wrong;
      MPI_Barrier(worker.comm);
    }
    if (accelerated()) ++by_plan;
    for (int start = 0; start < 5; ++start)
      if (!persistent.is_right(round + start)) ++wrong;
    if (fresh) MPI_Comm_free(&worker.comm);
    worker.comm = parent;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (provided != MPI_THREAD_MULTIPLE) {
    if (rank == 0) std::printf("threads: skipped, the host has no MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 77;
  }
  const int threads = argc > 1 ? std::atoi(argv[1]) : 3;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 100;
  std::vector<MPI_Comm> comms(static_cast<std::size_t>(threads));
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<Persistent> persistent;
  persistent.reserve(comms.size());  // MPI has their addresses
  for (int i = 0; i < threads; ++i) persistent.emplace_back(MPI_COMM_WORLD);
  std::atomic<int> wrong{0}, by_plan{0};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    const Worker worker{comms[static_cast<std::size_t>(i)], 1000 * i, rounds};
    running.emplace_back([&, worker, i] { work(worker, persistent[static_cast<std::size_t>(i)], wrong, by_plan); });
  }
  for (std::thread& thread : running) thread.join();
  for (Persistent& one : persistent) one.free();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  std::printf("threads: rank %d: %d wrong, %d rounds by a plan\n", rank, wrong.load(), by_plan.load());
  MPI_Finalize();
  return wrong == 0 && (by_plan > 0 || strcmp(plan_used(), "absent") == 0) ? 0 : 1;
}
