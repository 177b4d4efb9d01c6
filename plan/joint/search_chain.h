// One chain of the joint search: Metropolis-Hastings over options and order.
//
// The paper draws a new option for an operation and lists the motifs anew by critical path. So does this; its moves are
// (a) on the critical way (critical_trace.h): a piece, or all pieces of its operation, before one that it waited for,
// or
//     that one behind it; another option for an operation;
// (b) anywhere: the same at random;
// (c) the schedule by critical path for the present options, with ways to go lengthened or shortened at random.
// The temperature falls from cycle to cycle's end, then the chain goes on from the best plan, or from far away.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "plan/joint/critical_trace.h"
#include "plan/joint/list_schedule.h"
#include "plan/joint/search_freedom.h"

namespace plait::plan::joint {

class SearchChain {
 public:
  struct Setting {
    std::vector<std::vector<int>> allowed = {};    // by task: options that may be chosen
    std::vector<std::vector<int>> first = {};      // by task: those to begin with, in some ways
    std::vector<std::vector<double>> likely = {};  // by task and option: where it is worth to look
    OrderFreedom order = OrderFreedom::all;
    double bound = 0;    // seconds: nothing is better
    double seconds = 0;  // 0: no limit
    long schedules = 0;  // 0: no limit
    std::function<double()> clock = {};
    std::uint64_t seed = 1;
  };
  struct State {
    std::vector<int> options;
    std::vector<OrderedPiece> order;
    double seconds = 0;
  };

  SearchChain(const StepTables& tables, const Setting& setting);
  void run();

  const State& best() const { return best_; }
  double first_seconds() const { return first_seconds_; }
  long schedules() const { return schedules_; }

 private:
  bool ended();
  double spent() const;
  void begin();
  void settle_in();
  void next_cycle();
  void step();
  bool draw_move();
  bool move_pieces();
  bool move_on_critical_way();
  bool move_anywhere();
  bool change_option();
  int draw_option(int task);
  void relist();
  void scatter();
  void replace_pieces(int task, int option);
  int find(const OrderedPiece& piece) const;
  void place_before(int moved, int target);
  void place_behind(int moved, int target);
  void place_operation_before(int task, const OrderedPiece& target);
  void turn_until_last(int position);
  void normalize();
  void evaluate();
  void take_candidate();
  int pick(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  double draw() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  Policy policy() const;

  const Setting& setting_;
  std::mt19937_64 random_;
  ListScheduler scheduler_;
  CriticalTrace trace_;
  std::vector<int> free_;  // tasks with more than one option
  std::vector<double> factors_;
  std::vector<OrderedPiece> scratch_;
  State current_, candidate_, best_;
  bool listed_ = false;  // the candidate's order comes from a policy, whose time it still has to show
  double temperature_ = 0;
  double heat_ = 1;           // of this cycle
  double cycle_seconds_ = 0;  // the best when the cycle began
  bool first_cycle_ = true;   // cold: what is near comes first
  long cycle_begin_ = 0, cycle_ = 0;
  double begun_ = 0, improved_ = 0, first_seconds_ = 0;
  long schedules_ = 0;
};

}  // namespace plait::plan::joint
