#include <chrono>
#include <cstdio>
#include <vector>

#include "plan/joint/list_schedule.h"
#include "tests/plan/joint/joint_graphs.h"
using namespace plait::plan::joint;
int main() {
  for (GraphKind kind : graph_kinds)
    for (double ratio : {0.5, 1., 2.})
      for (bool contended : {false, true}) {
        const StepGraph graph = random_graph({.kind = kind, .operations = 200, .communication = ratio, .contended = contended});
        if (auto s = validate(graph); !s.ok()) { printf("%s\n", s.message().c_str()); return 1; }
        const StepTables tables(graph);
        ListScheduler scheduler(tables);
        const auto options = greedy_options(graph);
        std::vector<OrderedPiece> order;
        printf("%-15s %.1f %d tasks %zu:", name(kind), ratio, contended, graph.tasks.size());
        for (Policy policy : {Policy::as_issued, Policy::fifo, Policy::lifo, Policy::critical_path}) {
          scheduler.list(options, policy, quick_limits, order);
          auto begin = std::chrono::steady_clock::now();
          double t = 0;
          for (int i = 0; i < 500; ++i) t = scheduler.list(options, policy, quick_limits, order);
          double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
          Schedule exact = scheduler.schedule(options, policy);
          printf("  %8.2f %8.2f(%3d%c) %6.0f/s", t, exact.seconds, exact.iterations, exact.periodic ? 'p' : '-', 500 / s);
        }
        std::vector<OrderedPiece> o;
        double t = scheduler.list(options, Policy::critical_path, exact_limits, o);
        double f = scheduler.follow(options, o, exact_limits);
        auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 500; ++i) scheduler.follow(options, o, quick_limits);
        double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        printf(" | %8.2f %8.2f %6.0f/s\n", t, f, 500 / s);
      }
}
