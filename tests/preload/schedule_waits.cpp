// A program with a step of three allreduces that its schedule (lifo_schedule.json) runs last in, first out, and that
// waits for the first one in all the ways in which a program may wait before it makes the others. Prints
// "schedule_waits: right"; a way that does not end is named when the time is up.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr unsigned seconds_a_way = 20;
int rank, ranks;
const char* current = "nothing";
MPI_Comm other;      // that has no schedule
volatile int* flag;  // of all ranks, beside MPI

void too_late(int) {
  static const char text[] = "schedule_waits: no end: ";
  if (write(2, text, sizeof text - 1) < 0 || write(2, current, std::strlen(current)) < 0 || write(2, "\n", 1) < 0)
    _exit(2);
  _exit(1);
}

struct Sum {
  explicit Sum(int count) : input(static_cast<std::size_t>(count)), output(input.size()) {}
  void post(int salt) {
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<double>(rank + salt) + static_cast<double>(i);
    MPI_Iallreduce(input.data(), output.data(), static_cast<int>(input.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                   &request);
  }
  void wait() { MPI_Wait(&request, MPI_STATUS_IGNORE); }
  void look(int salt) const {
    for (std::size_t i = 0; i < output.size(); ++i) {
      const double wanted = ranks * (ranks - 1) / 2.0 + ranks * (salt + static_cast<double>(i));
      if (output[i] == wanted) continue;
      std::printf("schedule_waits: wrong: %s: element %zu is %g, not %g\n", current, i, output[i], wanted);
      std::fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  std::vector<double> input, output;
  MPI_Request request = MPI_REQUEST_NULL;
};

// ---- Ways to wait for the first call; true where the others were made in it ----

struct Step {
  Sum a{1000}, b{2000}, c{1000};
  int salt = 0;
  void post_rest() {
    b.post(salt);
    c.post(salt);
  }
};

bool not_at_all(Step&) { return false; }
bool in_wait(Step& step) { return step.a.wait(), false; }
bool in_waitany(Step& step) {
  int index = 0;
  MPI_Waitany(1, &step.a.request, &index, MPI_STATUS_IGNORE);
  return false;
}
bool in_waitsome(Step& step) {
  int count = 0, index = 0;
  MPI_Waitsome(1, &step.a.request, &count, &index, MPI_STATUSES_IGNORE);
  return false;
}
bool test_every(Step& step, useconds_t microseconds) {
  for (int complete = 0; complete == 0; usleep(microseconds)) MPI_Test(&step.a.request, &complete, MPI_STATUS_IGNORE);
  return false;
}
bool in_tests(Step& step) {
  for (int complete = 0; complete == 0;) MPI_Test(&step.a.request, &complete, MPI_STATUS_IGNORE);
  return false;
}
bool in_few_tests(Step& step) { return test_every(step, 1000); }
bool in_calls_that_block(Step& step) {
  double one = 1, all = 0;
  if (rank == 0) step.a.wait();
  MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, other);
  return false;
}
// Rank 0 makes all calls before; the others make theirs once it is through with the first one.
bool for_a_message(Step& step) {
  char token = 0;
  if (rank != 0) return MPI_Recv(&token, 1, MPI_CHAR, 0, 1, other, MPI_STATUS_IGNORE), false;
  step.post_rest();
  step.a.wait();
  for (int to = 1; to < ranks; ++to) MPI_Send(&token, 1, MPI_CHAR, to, 1, other);
  return true;
}
bool for_memory(Step& step) {
  const int before = step.salt;
  if (rank != 0) {
    while (*flag < before) usleep(1000);
    return false;
  }
  step.post_rest();
  step.a.wait();
  *flag = before;
  return true;
}

struct Way {
  const char* name;
  bool (*wait)(Step& step);
};
constexpr std::array ways = {Way{"at the end alone", not_at_all},
                             Way{"MPI_Wait", in_wait},
                             Way{"MPI_Waitany", in_waitany},
                             Way{"MPI_Waitsome", in_waitsome},
                             Way{"MPI_Test at once", in_tests},
                             Way{"MPI_Test now and then", in_few_tests},
                             Way{"a collective on another communicator", in_calls_that_block},
                             Way{"for a message", for_a_message},
                             Way{"for a word in memory", for_memory}};

void iterate(Step& step, const Way& way) {
  ++step.salt;
  step.a.post(step.salt);
  if (!way.wait(step)) step.post_rest();
  for (Sum* sum : {&step.a, &step.b, &step.c}) {
    sum->wait();
    sum->look(step.salt);
  }
}

void play(Step& step, const Way& way) {
  current = way.name;
  alarm(seconds_a_way);
  for (int iteration = 0; iteration < 3; ++iteration) iterate(step, way);
  // None of the schedule's: what comes next is kept to it.
  Sum last(3);
  last.post(step.salt);
  last.wait();
  last.look(step.salt);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Win window;
  int* own = nullptr;
  MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, other, &own, &window);
  MPI_Aint bytes = 0;
  int unit = 0;
  void* all = nullptr;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &all);
  flag = static_cast<volatile int*>(all);
  if (rank == 0) *flag = 0;
  MPI_Barrier(other);
  std::signal(SIGALRM, too_late);
  Step step;
  for (const Way& way : ways) play(step, way);
  alarm(0);
  if (rank == 0) std::printf("schedule_waits: right\n");
  MPI_Win_free(&window);
  MPI_Comm_free(&other);
  MPI_Finalize();
}
