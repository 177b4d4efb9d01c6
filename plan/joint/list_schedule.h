// The schedule of a step for given options: by a policy, or by a given order. Deterministic; one object for each
// thread.
#pragma once

#include <span>
#include <vector>

#include "plan/joint/step_simulation.h"
#include "plan/joint/step_tables.h"

namespace plait::plan::joint {

enum class Policy {
  as_issued,      // one operation at a time, in the order of the program: a communication stream
  fifo,           // each channel its pieces, in the order of the program
  lifo,           // the operation that was issued last, one at a time (ByteScheduler, as Syndicate's BS+, section 6.4)
  critical_path,  // the longest way to go, computation included (Syndicate's optSched, Pseudocode 1)
};

struct TimedPiece {
  int task = 0;
  int piece = 0;      // 0 for computation
  int iteration = 0;  // 0: the last iteration that was simulated, -1: the one before
  double start = 0, end = 0;
};

struct Schedule {
  double seconds = 0;     // of an iteration in the steady state; infinite: the order lets pieces wait for ever
  int iterations = 0;     // simulated
  bool periodic = false;  // the simulation found the steady state itself, not only a bound of its pace
  std::vector<OrderedPiece> order;   // of all pieces in a period; each channel runs its own in this order
  std::vector<TimedPiece> timeline;  // of the last two iterations, by start
};

// Many iterations, for a result; a few, for a search, whose answer follow() then looks at again.
inline constexpr SimulationLimits exact_limits = {.most_iterations = 200};
inline constexpr SimulationLimits quick_limits = {.most_iterations = 8, .quick = true};

class ListScheduler {
 public:
  explicit ListScheduler(const StepTables& tables);

  // What a search asks. By task: the options. Infinite: cannot be executed. `order`: what can be followed to get this
  // time or a shorter one; not touched by Policy::as_issued, which is no order of channels.
  double list(std::span<const int> options, Policy policy, const SimulationLimits& limits,
              std::vector<OrderedPiece>& order);
  double follow(std::span<const int> options, std::span<const OrderedPiece> order, const SimulationLimits& limits);
  // critical_path with every piece's way to go multiplied by a factor of its own, by slot of simulation().
  double list_perturbed(std::span<const int> options, std::span<const double> factors, const SimulationLimits& limits,
                        std::vector<OrderedPiece>& order);

  const StepSimulation& simulation() const { return simulation_; }
  int pieces_of(int task, int option) const { return tables_.option(task, option).pieces; }

  // With everything that there is to say.
  Schedule schedule(std::span<const int> options, Policy policy);
  Schedule schedule(std::span<const int> options, std::span<const OrderedPiece> order);

 private:
  double list_chosen(Policy policy, const SimulationLimits& limits, std::vector<OrderedPiece>& order);
  double list_by_priority(bool one_operation, double lead, const SimulationLimits& limits,
                          std::vector<OrderedPiece>& order);
  void program_order(std::vector<OrderedPiece>& order) const;
  double least_seconds() const;
  void find_ways(double seconds);
  void find_ways_once(double seconds);
  double way_after(int task) const;
  void latest_first();
  std::vector<TimedPiece> timeline() const;

  const StepTables& tables_;
  StepSimulation simulation_;
  SimulationResult result_;
  std::vector<double> priority_;      // by slot
  std::vector<double> program_way_;   // by task: the longest way from when the program comes to it
  std::vector<double> previous_way_;  // by task, of the program one step later, less the step
  std::vector<double> waiting_way_;   // by task: of what waits for it, apart from the program
};

}  // namespace plait::plan::joint
