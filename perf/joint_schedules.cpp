#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

#include "plan/joint/baselines.h"
#include "plan/joint/list_schedule.h"
#include "tests/plan/joint/joint_graphs.h"
using namespace plait::plan::joint;
double cpu(){ timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&t); return t.tv_sec+1e-9*t.tv_nsec; }
int main(int argc, char** argv) {
  long budget = argc > 1 ? atol(argv[1]) : 5000;
  int reps = argc > 2 ? atoi(argv[2]) : 3;
  bool verbose = argc > 3;
  double all = 0; int n = 0;
  for (int c = 0; c < 2; ++c)
  for (double ratio : {0.5, 1., 2.})
  for (GraphKind kind : graph_kinds) {
      double sum = 0, s0=0; double cpu0 = cpu(); long tried = 0;
      for (int rep = 0; rep < reps; ++rep) {
        bool contended = c;
        int operations = 10 << (2*(rep%3));
        const StepGraph graph = random_graph({.kind = kind, .operations = operations, .communication = ratio, .contended = contended, .seed=(unsigned) rep + 7});
        if (auto s = validate(graph); !s.ok()) { printf("%s\n", s.message().c_str()); return 1; }
        auto t0 = std::chrono::steady_clock::now();
        LowerBound lb = lower_bound(graph);
        double lbs = std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
        JointPlan p = joint_search(graph, {.seconds = 0, .schedules = budget});
        double d = p.seconds / lb.seconds() - 1;
        tried += p.schedules;
        all += d; ++n; sum += d; s0 += p.greedy_seconds / lb.seconds() - 1;
        if (verbose)
        printf("%-15s %.1f %d ops %3d: bound %7.2f (circle %7.2f channels %7.2f windows %7.2f mix %7.2f, %.1f ms) greedy %7.2f joint %7.2f  distance %5.2f%%  %ld in %.2f s\n", name(kind), ratio, contended, operations, lb.seconds(), lb.circle, lb.channels, lb.windows, lb.mixture, lbs*1e3, p.greedy_seconds, p.seconds, 100*d, p.schedules, p.spent);
      }
      printf("%d %.1f %-15s greedy %6.2f%% joint %6.2f%%  %.0f/s\n", c, ratio, name(kind), 100*s0/reps, 100*sum/reps, tried/(cpu()-cpu0));
      fflush(stdout);
    }
  printf("mean %.3f%%\n", 100 * all / n);
}
