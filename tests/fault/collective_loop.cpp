// A job that makes collective calls and checks their results, and to which something happens on the way.
//
//   collective_loop [--seconds S] [--kill RANK] [--freeze RANK SECONDS] [--after SECONDS] [--expect-host]
//                   [--persistent] [--idle SECONDS]
//
// --idle: in between it computes for so long, which rank 0 says; then it goes on for as long again.
// --persistent: of persistent collectives, each rank starts its own in another order.
// --kill, --freeze: a process of its own sends the rank a SIGKILL, or a SIGSTOP and later a SIGCONT, after the given
// time. Rank 0 prints "done" and the plan of the last call, when all results were right.
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Open MPI 4.1 has MPI 4.0's persistent collectives as an extension.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define PLAIT_PERSISTENT(Name) MPIX_##Name##_init
#else
#define PLAIT_PERSISTENT(Name) MPI_##Name##_init
#endif

#include "plait/plait.h"

namespace {

struct Options {
  double seconds = 4;
  double after = 2;
  int killed = -1, frozen = -1;
  double frozen_seconds = 3;
  double idle = 0;
  bool expect_host = false, persistent = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&] { return ++i < argc ? std::atof(argv[i]) : 0; };
    if (option == "--seconds")
      options.seconds = value();
    else if (option == "--after")
      options.after = value();
    else if (option == "--idle")
      options.idle = value();
    else if (option == "--kill")
      options.killed = static_cast<int>(value());
    else if (option == "--freeze")
      options.frozen = static_cast<int>(value()), options.frozen_seconds = value();
    else if (option == "--expect-host")
      options.expect_host = true;
    else if (option == "--persistent")
      options.persistent = true;
    else
      std::fprintf(stderr, "collective_loop: unknown option %s\n", argv[i]), std::exit(2);
  }
  return options;
}

void sleep_seconds(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

// Before MPI starts, so that nothing of it is inherited; the launcher has said which rank this will be.
void start_fate(const Options& options) {
  const char* rank_text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank_text == nullptr) rank_text = std::getenv("PMI_RANK");  // MPICH's launcher
  const int rank = rank_text != nullptr ? std::atoi(rank_text) : 0;
  if (rank != options.killed && rank != options.frozen) return;
  const pid_t victim = getpid();
  if (fork() != 0) return;
  // The launcher waits for the end of what holds its pipes.
  for (const int descriptor : {0, 1, 2}) close(descriptor);
  sleep_seconds(options.after);
  if (rank == options.killed) {
    kill(victim, SIGKILL);
  } else {
    kill(victim, SIGSTOP);
    sleep_seconds(options.frozen_seconds);
    kill(victim, SIGCONT);
  }
  _exit(0);
}

class Loop {
 public:
  Loop() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  void run(double seconds, bool persistent) {
    const double end = MPI_Wtime() + seconds;
    if (persistent) make_persistent();
    for (bool more = true; more; ++round_) {
      if (persistent) {
        check_persistent();
        more = go_on(end);
        continue;
      }
      for (const std::size_t count : {1u, 300u, 9000u, 300000u}) {
        check_allreduce(count);
        check_bcast(count);
        check_alltoall(count / static_cast<std::size_t>(ranks_) + 1);
        MPI_Barrier(MPI_COMM_WORLD);
      }
      more = go_on(end);
    }
  }

  int rank() const { return rank_; }
  long rounds() const { return round_; }

 private:
  static constexpr std::size_t persistent_calls = 4;

  static bool go_on(double end) {
    int more = MPI_Wtime() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more != 0;
  }

  // They are never freed: MPICH 4.0 cannot do that.
  void make_persistent() {
    for (std::size_t k = 0; k < persistent_calls; ++k) {
      const std::size_t count = std::array{1u, 300u, 9000u, 300000u}[k];
      inputs_[k].resize(count);
      sums_[k].resize(count);
      PLAIT_PERSISTENT(Allreduce)
      (inputs_[k].data(), sums_[k].data(), static_cast<int>(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
       &requests_[k]);
    }
  }

  void check_persistent() {
    for (std::vector<std::int64_t>& input : inputs_)
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = value(rank_, i);
    for (std::size_t k = 0; k < persistent_calls; ++k)
      MPI_Start(&requests_[(k + static_cast<std::size_t>(rank_)) % persistent_calls]);
    std::array<MPI_Status, persistent_calls> statuses;
    MPI_Waitall(static_cast<int>(persistent_calls), requests_.data(), statuses.data());
    bool right = true;
    for (const std::vector<std::int64_t>& sums : sums_)
      for (std::size_t i = 0; i < sums.size(); ++i) {
        std::int64_t expected = 0;
        for (int rank = 0; rank < ranks_; ++rank) expected += value(rank, i);
        right = right && sums[i] == expected;
      }
    require(right, "persistent allreduce");
  }

  std::int64_t value(int rank, std::size_t i) const { return round_ * 1000 + rank * 10 + static_cast<int>(i % 7); }

  void require(bool right, const char* what) const {
    if (right) return;
    std::fprintf(stderr, "collective_loop: rank %d: wrong result of %s in round %ld\n", rank_, what, round_);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

  void check_allreduce(std::size_t count) {
    std::vector<std::int64_t> values(count), sums(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value(rank_, i);
    MPI_Allreduce(values.data(), sums.data(), static_cast<int>(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    bool right = true;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t expected = 0;
      for (int rank = 0; rank < ranks_; ++rank) expected += value(rank, i);
      right = right && sums[i] == expected;
    }
    require(right, "allreduce");
  }

  void check_bcast(std::size_t count) {
    const int root = static_cast<int>(round_ % ranks_);
    std::vector<std::int64_t> values(count, -1);
    for (std::size_t i = 0; i < count && rank_ == root; ++i) values[i] = value(root, i);
    MPI_Bcast(values.data(), static_cast<int>(count), MPI_INT64_T, root, MPI_COMM_WORLD);
    bool right = true;
    for (std::size_t i = 0; i < count; ++i) right = right && values[i] == value(root, i);
    require(right, "bcast");
  }

  void check_alltoall(std::size_t count) {
    const std::size_t all = count * static_cast<std::size_t>(ranks_);
    std::vector<std::int64_t> sent(all), received(all, -1);
    for (std::size_t i = 0; i < all; ++i) sent[i] = value(rank_, i / count);
    MPI_Alltoall(sent.data(), static_cast<int>(count), MPI_INT64_T, received.data(), static_cast<int>(count),
                 MPI_INT64_T, MPI_COMM_WORLD);
    bool right = true;
    for (std::size_t i = 0; i < all; ++i)
      right = right && received[i] == value(static_cast<int>(i / count), static_cast<std::size_t>(rank_));
    require(right, "alltoall");
  }

  int rank_ = 0, ranks_ = 0;
  long round_ = 0;
  std::array<std::vector<std::int64_t>, persistent_calls> inputs_, sums_;
  std::array<MPI_Request, persistent_calls> requests_{};
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  start_fate(options);
  MPI_Init(&argc, &argv);
  const auto last_plan = reinterpret_cast<decltype(&plait_last_plan)>(dlsym(RTLD_DEFAULT, "plait_last_plan"));
  Loop loop;
  loop.run(options.seconds, options.persistent);
  if (options.idle > 0) {
    if (loop.rank() == 0) std::puts("idle"), std::fflush(stdout);
    sleep_seconds(options.idle);
    loop.run(options.seconds, options.persistent);
  }
  const std::string plan = last_plan != nullptr ? last_plan() : "";
  if (loop.rank() == 0) std::printf("done: %ld rounds, plan %s\n", loop.rounds(), plan.c_str());
  MPI_Finalize();
  // Without Plait, or with it where it should not be, the test would test nothing.
  return plan.empty() || (plan == "host") != options.expect_host ? 1 : 0;
}
