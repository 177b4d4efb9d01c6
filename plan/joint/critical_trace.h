// Why an iteration takes as long as it does: from an end back along what each thing waited for. Where it goes round,
// only what stands on the way can make the iteration shorter.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "plan/joint/step_simulation.h"

namespace plait::plan::joint {

// A piece that waited for its channel, and the piece that it waited for.
struct ChannelWait {
  OrderedPiece first, second;
};

class CriticalTrace {
 public:
  explicit CriticalTrace(const StepTables& tables);

  // After a simulation that followed the order. Where several things ended when one began, one is taken at random.
  void find(const StepSimulation& simulation, std::span<const OrderedPiece> order, double seconds,
            std::mt19937_64& random);

  const std::vector<ChannelWait>& waits() const { return waits_; }    // from late to early
  const std::vector<int>& operations() const { return operations_; }  // tasks, each once

 private:
  struct Place {
    int slot = 0, iteration = 0;
    bool by_channel = false;
  };

  void find_places();
  void add_causes(const Place& place);
  void add_program(int task, int iteration, double time);
  void add_operation_end(int task, int iteration, double time);
  void add_channel(const Place& place, double time);
  void note(const Place& from, const Place& to);
  int next_slot(int task) const;
  bool same(double a, double b) const;
  OrderedPiece named(int slot) const;

  const StepTables& tables_;
  const StepSimulation* simulation_ = nullptr;
  std::span<const OrderedPiece> order_;
  double tolerance_ = 0;
  int earliest_ = 0;
  std::vector<int> position_;  // by slot: in the order
  std::vector<Place> causes_;
  std::vector<ChannelWait> waits_;
  std::vector<int> operations_;
  std::vector<char> noted_;  // by task
};

}  // namespace plait::plan::joint
