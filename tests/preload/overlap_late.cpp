// Training steps under MPI_THREAD_MULTIPLE and PLAIT_OVERLAP=auto whose waits come so late that the helper thread,
// which may call MPI then, has completed every request before: MPI_Waitall finds nothing to do, and makes no progress.
//
//   overlap_late STEPS COMMUNICATORS
//
// The steps' calls take turns over the communicators, each of which has all of a step's sizes. All results are checked,
// and a rank that waits too long ends the job. Prints "overlap_late: right" at the end.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::array<int, 8> step_floats = {4000, 800, 12000, 800, 800, 2000, 12000, 400};
constexpr int layer_us = 500, rest_us = 15'000;
constexpr unsigned patience_s = 20;

int rank, ranks;

void too_late(int) {
  static const char text[] = "overlap_late: wrong: a rank waits for ever\n";
  if (write(2, text, sizeof text - 1) < 0) _exit(2);
  _exit(1);
}

void check(bool right, const char* what, int step) {
  if (right) return;
  std::fprintf(stderr, "overlap_late: wrong: %s of step %d, rank %d\n", what, step, rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Buffer {
  std::vector<float> input, output;
};

float value(int member, int step, std::size_t call, std::size_t index) {
  return static_cast<float>((member * 7 + step * 3 + static_cast<int>(call) * 13 + static_cast<int>(index) * 5) % 23);
}

class Program {
 public:
  explicit Program(int communicators) {
    for (int i = 0; i < communicators; ++i) {
      MPI_Comm comm = MPI_COMM_NULL;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      comms_.push_back(comm);
      std::vector<char> data(65536), all(65536);  // so that it is set up for all lengths
      for (int j = 0; j < 2; ++j) MPI_Allreduce(data.data(), all.data(), 65536, MPI_CHAR, MPI_BOR, comm);
    }
    buffers_.resize(comms_.size() * step_floats.size());
    requests_.resize(buffers_.size());
  }
  ~Program() {
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run(int step) {
    for (std::size_t call = 0; call < buffers_.size(); ++call) {
      usleep(layer_us);
      post(step, call);
    }
    usleep(rest_us);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    for (std::size_t call = 0; call < buffers_.size(); ++call) look(step, call);
  }

 private:
  void post(int step, std::size_t call) {
    Buffer& buffer = buffers_[call];
    const int floats = step_floats[call / comms_.size()];
    buffer.input.resize(static_cast<std::size_t>(floats));
    buffer.output.assign(buffer.input.size(), -1);
    for (std::size_t i = 0; i < buffer.input.size(); ++i) buffer.input[i] = value(rank, step, call, i);
    MPI_Iallreduce(buffer.input.data(), buffer.output.data(), floats, MPI_FLOAT, MPI_SUM, comms_[call % comms_.size()],
                   &requests_[call]);
  }

  void look(int step, std::size_t call) const {
    const std::vector<float>& output = buffers_[call].output;
    for (std::size_t i = 0; i < output.size(); ++i) {
      float right = 0;
      for (int member = 0; member < ranks; ++member) right += value(member, step, call, i);
      check(output[i] == right, "an element", step);
    }
  }

  std::vector<MPI_Comm> comms_;
  std::vector<Buffer> buffers_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check(provided == MPI_THREAD_MULTIPLE, "the level of threads", 0);
  std::signal(SIGALRM, too_late);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 60, communicators = argc > 2 ? std::atoi(argv[2]) : 1;
  {
    Program program(communicators);
    for (int step = 0; step < steps; ++step) {
      alarm(patience_s);
      program.run(step);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::printf("overlap_late: right: %d steps\n", steps);
  MPI_Finalize();
  return 0;
}
