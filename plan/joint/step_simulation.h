// A step simulated over and over, event by event, under one of three rules of which piece may begin. Deterministic. One
// object for each thread: after its first use for a graph nothing is allocated.
//
// How many iterations: until the step is periodic, i.e. until every end of a piece or a computation is later by the
// same time than in the iteration before (or by the same over two iterations, where they alternate). What follows
// depends on one iteration, and on one more for each that a piece of the order is ahead: so many times in a row it has
// to be the same; then nothing changes any more. Most steps are there after 2 to 5 iterations. Where some part has
// slack it runs ahead of the rest for a while, and how long depends on how small the slack is. So a simulation also
// stops after `most_iterations` (or, if `quick`, once the slowest part has kept its pace for three iterations), and the
// iteration time is the pace of the slowest part. Without contention, of an order that is followed, this is never below
// the true one: what grows by at most x an iteration does so in all that follow (Collatz and Wielandt's bound, in
// max-plus algebra).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/joint/step_tables.h"

namespace plait::plan::joint {

// A place in the order of a period: `ahead` is the number of iterations that the piece's operation is ahead of those
// with 0 at the same time (prefetching).
struct OrderedPiece {
  int task = 0;
  int piece = 0;
  int ahead = 0;

  bool operator==(const OrderedPiece&) const = default;
};

struct SimulationLimits {
  int most_iterations = 12;  // at least 2
  bool quick = false;
};

struct SimulationResult {
  double seconds = 0;  // an iteration; infinite: pieces would wait for one another for ever
  int iterations = 0;  // simulated
  bool periodic = false;
};

class StepSimulation {
 public:
  // Keeps a reference to the tables.
  explicit StepSimulation(const StepTables& tables);

  // By task; from here on the slots are those of these options.
  void choose(std::span<const int> options);

  // Each channel runs its pieces in this order, and waits for the next one even where later ones could begin: what an
  // enforcer does (Pseudocode 2). Every piece of the chosen options stands in it once.
  SimulationResult follow(std::span<const OrderedPiece> order, const SimulationLimits& limits);
  // Of the pieces that could begin, the one with the highest priority does: by slot, less `lead` for each iteration.
  // `one_operation`: pieces of two operations never run together.
  SimulationResult list(std::span<const double> priority, double lead, bool one_operation,
                        const SimulationLimits& limits);
  // One operation at a time, as issued.
  SimulationResult in_turn(const SimulationLimits& limits);

  // The order in which the pieces of the last simulated period began. Of list().
  void last_order(std::vector<OrderedPiece>& order);

  const StepTables& tables() const { return tables_; }
  // Computation and pieces have slots: those of a task are consecutive.
  int slots() const { return slots_; }
  int first_slot(int task) const { return first_slot_[task]; }
  int task_of(int slot) const { return slot_task_[slot]; }
  const FlatPiece& piece_of(int slot) const { return slot_piece_[slot]; }
  // Of the last simulation, for its last iterations that ended, `rows` - 2 of them at most.
  static constexpr int rows = 8;  // a power of two
  int last_iteration() const { return last_iteration_; }
  double start(int slot, int iteration) const { return starts_[row(iteration) + slot]; }
  double end(int slot, int iteration) const { return ends_[row(iteration) + slot]; }

 private:
  enum class Rule { order, priority, turn };
  struct Running {
    double left = 0;  // seconds of its own work; without contention, the time when it ends
    double rate = 1, slowness = 1;
    int slot = 0;
  };
  struct Ready {
    double key = 0;
    int slot = 0;
    bool operator<(const Ready& other) const { return key != other.key ? key < other.key : slot > other.slot; }
  };
  struct Began {
    int slot = 0, iteration = 0;
  };
  struct Line {  // of a channel under Rule::order
    std::vector<int> slots, ahead;
    int next = 0, round = 0;
  };

  std::size_t row(int iteration) const { return static_cast<std::size_t>((iteration & (rows - 1)) * slots_); }
  template <Rule rule>
  SimulationResult simulate(const SimulationLimits& limits);
  template <bool contended, Rule rule>
  void run();
  void reset();
  void line_up(std::span<const OrderedPiece> order);
  void skip_unborn(Line& line);

  template <Rule rule>
  void pass_program();
  template <Rule rule>
  void submit(int task);
  template <Rule rule>
  void open(int task);
  bool waits_met(const FlatTask& task, int iteration) const;
  void task_ended(int task, int iteration);

  template <bool contended, Rule rule>
  void dispatch();
  template <bool contended>
  void dispatch_in_order();
  template <bool contended>
  void dispatch_by_priority();
  template <bool contended>
  void dispatch_in_turn();
  bool heads_all_lines(int slot) const;
  bool may_begin(int slot) const;
  bool is_free(const FlatPiece& piece) const { return (piece.channels & full_) == 0; }
  template <bool contended>
  void begin(int slot);
  void occupy(std::uint32_t channels, int change);
  void push(int slot, int iteration);

  void set_rates();
  template <bool contended>
  void advance();
  template <bool contended, Rule rule>
  void complete_due();
  template <Rule rule>
  void complete(int slot);
  struct Pace {
    double most = 0, least = 0;
  };
  Pace pace(int iteration, int over) const;
  void settle(int iteration);
  double fastest_pace(int iteration, int over, double* slowest) const;

  const StepTables& tables_;
  // By slot.
  int slots_ = 0, pieces_ = 0;
  std::vector<int> first_slot_, slot_task_;
  std::vector<FlatPiece> slot_piece_;  // copies, one behind the other
  double tiny_ = 0;                    // times this near are the same: sums in another order differ in the last bits
  // By task.
  std::vector<int> issued_, ended_, left_;  // instances submitted, ended; pieces left of the present one
  std::vector<std::uint64_t> begun_, done_;
  std::vector<char> open_;
  // The state.
  double now_ = 0;
  int position_ = 0, iteration_ = 0, turn_ = 0;
  bool computing_ = false, stopped_ = false;
  bool rates_stale_ = true, rated_computing_ = false;  // of what runs, by what runs beside it
  double computation_left_ = 0, computation_rate_ = 1;
  std::vector<Running> running_;
  std::vector<int> used_;  // by channel
  std::uint32_t full_ = 0;
  std::vector<Line> lines_;
  std::vector<std::vector<Ready>> ready_;  // by place; heaps
  std::span<const double> priority_;
  double lead_ = 0;
  bool one_operation_ = false;
  int tasks_left_[rows] = {};  // by iteration
  SimulationLimits limits_;
  int history_ = 1;  // iterations that decide what follows: one, and those that pieces are ahead
  double last_pace_ = 0;
  int steady_ = 0;  // iterations in which the pace has been the same
  SimulationResult result_;
  // What happened.
  int last_iteration_ = -1;
  std::vector<double> starts_, ends_;
  std::vector<Began> log_;
  std::vector<char> seen_;
};

}  // namespace plait::plan::joint
