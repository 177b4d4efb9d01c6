// The joint search of plan/joint on generated steps: schedules a second, how far its plans are from a lower bound, and
// how many are optimal where all plans can be tried. Needs neither MPI nor a network.
//
//   joint_schedules [GRAPHS [SCHEDULES]]    200 graphs, 60000 schedules of search for each
//
// The graphs (tests/plan/joint/joint_graphs.h) are of five kinds in turn, of 10 to 200 operations, with 2 or 3
// channels; the busiest channel has half, as much as, or twice the work of computation; of every three, in one pieces
// take from computation and share a channel. Times are of processor, not of the clock, so that what else runs counts
// less.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "plan/joint/joint_search.h"
#include "plan/joint/list_schedule.h"
#include "tests/plan/joint/brute_force.h"
#include "tests/plan/joint/joint_graphs.h"

namespace {

using namespace plait::plan::joint;

constexpr double balances[] = {0.5, 1, 2};
const char* const balance_names[] = {"compute-bound", "balanced", "communication-bound"};

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The best of some rounds: the machine is not ours alone.
template <class Call>
double a_second(Call call) {
  constexpr int rounds = 9, calls = 100;
  double least = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double begun = processor_seconds();
    for (int i = 0; i < calls; ++i) call();
    least = std::min(least, (processor_seconds() - begun) / calls);
  }
  return 1 / least;
}

void print_speed() {
  std::printf("schedules a second, 200 operations, one thread\n");
  std::printf("%-16s %-12s %6s %8s %12s %15s\n", "steps", "contention", "tasks", "pieces", "given order",
              "critical path");
  for (const bool contended : {false, true}) {
    for (const GraphKind kind : graph_kinds) {
      const StepGraph graph = random_graph({.kind = kind, .operations = 200, .contended = contended});
      const StepTables tables(graph);
      ListScheduler scheduler(tables);
      const std::vector<int> options = greedy_options(graph);
      std::vector<OrderedPiece> order, other;
      scheduler.list(options, Policy::critical_path, quick_limits, order);
      const double follow = a_second([&] { scheduler.follow(options, order, quick_limits); });
      const double list = a_second([&] { scheduler.list(options, Policy::critical_path, quick_limits, other); });
      std::printf("%-16s %-12s %6zu %8zu %12.0f %15.0f\n", name(kind), contended ? "yes" : "no", graph.tasks.size(),
                  order.size(), follow, list);
    }
  }
}

struct Class {
  int graphs = 0;
  double greedy = 0, mean = 0, worst = 0;

  void add(double distance, double greedy_distance) {
    ++graphs;
    mean += distance;
    greedy += greedy_distance;
    worst = std::max(worst, distance);
  }
  void print(const std::string& title) const {
    std::printf("%-32s %6d %9.2f %% %9.2f %% %9.2f %%\n", title.c_str(), graphs, 100 * greedy / graphs,
                100 * mean / graphs, 100 * worst);
  }
};

GraphRequest numbered(int number) {
  GraphRequest request{.kind = graph_kinds[number % 5], .communication = balances[number / 5 % 3]};
  request.contended = number / 15 % 3 == 2;
  request.channels = 2 + number / 45 % 2;
  request.operations = static_cast<int>(std::lround(10 * std::pow(20, (number * 7 % 20) / 19.)));
  request.seed = static_cast<std::uint64_t>(number) + 1;
  return request;
}

void print_distances(int graphs, long schedules) {
  std::map<std::string, Class> classes;
  double begun = processor_seconds(), bounding = 0;
  long tried = 0;
  for (int number = 0; number < graphs; ++number) {
    const GraphRequest request = numbered(number);
    const StepGraph graph = random_graph(request);
    const double before = processor_seconds();
    lower_bound(graph);
    bounding += processor_seconds() - before;
    const JointPlan plan = joint_search(graph, {.seconds = 0, .schedules = schedules});
    tried += plan.schedules;
    const double bound = plan.bound.seconds(), distance = plan.seconds / bound - 1;
    const std::string balance = balance_names[number / 5 % 3];
    const std::string contention = request.contended ? ", contention" : "";
    for (const std::string& own :
         {std::string("0 all"), "1 " + balance + contention, "2 " + std::string(name(request.kind)),
          std::string(request.operations < 50 ? "3 10 to 49 operations" : "3 50 to 200 operations")})
      classes[own].add(distance, plan.greedy_seconds / bound - 1);
  }
  std::printf("\nabove the lower bound\n%-32s %6s %11s %11s %11s\n", "steps", "graphs", "greedy", "joint", "worst");
  for (const auto& [title, one] : classes) one.print(title.substr(2));
  const double spent = processor_seconds() - begun;
  std::printf("%ld schedules in %.0f s, %.0f a second with all else; a bound in %.1f ms\n", tried, spent,
              static_cast<double>(tried) / (spent - bounding), 1e3 * bounding / graphs);
}

// Steps so small that all plans can be tried.
void print_optimal(int graphs) {
  int tried = 0, optimal = 0;
  double worst = 0;
  std::array<int, 2> steps = {};              // without contention, with it
  std::array<double, 2> bound_distance = {};  // of the optimum
  for (int number = 0; tried < graphs; ++number) {
    GraphRequest request = numbered(number);
    request.operations = 2 + number % 4;
    request.most_options = request.operations < 4 ? 4 : 2;
    request.most_pieces = request.operations < 3 ? 3 : number % 2 + 1;
    const StepGraph graph = random_graph(request);
    if (brute_force_schedules(graph) > 4e5) continue;
    ++tried;
    const BruteForce best = brute_force(graph);
    const JointPlan plan = joint_search(graph, {.seconds = 0, .schedules = 20000});
    const double distance = plan.seconds / best.seconds - 1;
    if (distance < 1e-6) ++optimal;
    worst = std::max(worst, distance);
    ++steps[request.contended ? 1 : 0];
    bound_distance[request.contended ? 1 : 0] += best.seconds / plan.bound.seconds() - 1;
  }
  std::printf("\nall plans tried: %d of %d optimal (%.1f %%), worst %.2f %% above\n", optimal, tried,
              100. * optimal / tried, 100 * worst);
  std::printf("the optimum is %.2f %% above the bound, with contention %.2f %%\n", 100 * bound_distance[0] / steps[0],
              100 * bound_distance[1] / steps[1]);
}

}  // namespace

int main(int count, char** arguments) {
  const int graphs = count > 1 ? std::atoi(arguments[1]) : 200;
  const long schedules = count > 2 ? std::atol(arguments[2]) : 60000;
  print_speed();
  print_optimal(graphs);
  print_distances(graphs, schedules);
}
