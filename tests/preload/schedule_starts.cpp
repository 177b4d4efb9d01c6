// A program with a step of three persistent allreduces that its schedule (lifo_starts_schedule.json) runs last in,
// first out: started in the same order on all ranks, then in an order of each rank's own, with others between them that
// the schedule does not have, and waited for in several ways. Prints "schedule_starts: right"; what does not end is
// named when the time is up.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "tests/persistent_form.h"

namespace {

constexpr unsigned seconds_a_part = 30;
int rank, ranks;
const char* current = "nothing";

void too_late(int) {
  static const char text[] = "schedule_starts: no end: ";
  if (write(2, text, sizeof text - 1) < 0 || write(2, current, std::strlen(current)) < 0 || write(2, "\n", 1) < 0)
    _exit(2);
  _exit(1);
}

void begin(const char* part) {
  current = part;
  alarm(seconds_a_part);
}

class Sum {
 public:
  explicit Sum(int count) : input_(static_cast<std::size_t>(count)), output_(input_.size()) {
    PLAIT_PERSISTENT(Allreduce)
    (input_.data(), output_.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  ~Sum() { MPI_Request_free(&request); }

  void start(int salt) {
    salt_ = salt;
    for (std::size_t i = 0; i < input_.size(); ++i)
      input_[i] = static_cast<double>(rank + salt) + static_cast<double>(i);
    MPI_Start(&request);
  }
  void look() const {
    for (std::size_t i = 0; i < output_.size(); ++i) {
      const double wanted = ranks * (ranks - 1) / 2.0 + ranks * (salt_ + static_cast<double>(i));
      if (output_[i] == wanted) continue;
      std::printf("schedule_starts: wrong: %s: element %zu is %g, not %g\n", current, i, output_[i], wanted);
      std::fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Request request = MPI_REQUEST_NULL;

 private:
  int salt_ = 0;
  std::vector<double> input_, output_;
};

struct Step {
  Sum a{1000}, b{2000}, c{1000}, other{500};
  int salt = 0;
};
using Sums = std::vector<Sum*>;

void wait_for(const Sums& sums, unsigned way) {
  std::vector<MPI_Request> requests;
  for (const Sum* sum : sums) requests.push_back(sum->request);
  const int count = static_cast<int>(requests.size());
  int complete = 0;
  if (way % 3 == 0)
    for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
  else if (way % 3 == 1)
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
  else
    while (complete == 0) MPI_Testall(count, requests.data(), &complete, MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i]->request = requests[i];
  for (const Sum* sum : sums) sum->look();
}

void in_one_order(Step& step) {
  begin("in one order");
  for (unsigned iteration = 0; iteration < 200; ++iteration) {
    ++step.salt;
    for (Sum* sum : {&step.a, &step.b, &step.c}) sum->start(step.salt);
    wait_for({&step.a, &step.b, &step.c}, iteration);
  }
}

// The first is waited for before the others are started: its pieces stand behind theirs.
void waited_for_at_once(Step& step) {
  begin("waited for before the next start");
  for (unsigned iteration = 0; iteration < 30; ++iteration) {
    ++step.salt;
    step.a.start(step.salt);
    wait_for({&step.a}, iteration);
    step.b.start(step.salt);
    step.c.start(step.salt);
    wait_for({&step.b, &step.c}, iteration);
  }
}

// Each rank its own, with another one and posted calls between them.
void in_any_order(Step& step) {
  begin("in an order of each rank's own");
  std::mt19937 own(static_cast<unsigned>(rank)), all(7);
  for (unsigned iteration = 0; iteration < 100; ++iteration) {
    ++step.salt;
    Sums sums = {&step.a, &step.b, &step.c};
    if (all() % 3 == 0) sums.push_back(&step.other);
    if (all() % 2 == 0) std::shuffle(sums.begin(), sums.end(), own);
    for (Sum* sum : sums) sum->start(step.salt);
    double one = 1, sum = 0;
    if (all() % 4 == 0) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    wait_for(sums, static_cast<unsigned>(own()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::signal(SIGALRM, too_late);
  {
    Step step;
    for (const auto part : {in_one_order, waited_for_at_once, in_any_order, in_one_order}) part(step);
  }
  alarm(0);
  if (rank == 0) std::printf("schedule_starts: right\n");
  MPI_Finalize();
}
