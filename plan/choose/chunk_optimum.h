// The dynamic programme over the levels: which programs are the best for chunks of a size.
//
// With c chunks of d bytes each a program takes fill(d) + (c - 1) x load(d) of the busiest level (docs/p2.md). A state
// is what the levels hold (LevelState), which says how much of the chunk is left to move at each; a choice is an
// instruction with its algorithm. Of two ways to one state the one that is not better in the fill and not better in any
// level's load is dropped, so that what is left at the goal holds the best way for every number of chunks. Exact but
// for rounding.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "plan/algorithm/program.h"
#include "plan/choose/call_synthesis.h"
#include "plan/synthesis/group_model.h"
#include "plan/synthesis/instruction_table.h"

namespace plait::plan {

// 1, 2, 4 .. 64.
inline constexpr int chunk_numbers = 7;

// A program with algorithms and what it costs, by byte of the vector.
struct CostedProgram {
  Program program;
  PipelineCost cost;              // volumes are seconds a byte
  double start_seconds_per_byte;  // before the first message
  int most_chunks;                // that it may be cut into
};
double seconds(const CostedProgram& program, int levels, double bytes, int chunks);

class ChunkOptimum {
 public:
  enum class Scope {
    all,   // every program
    flat,  // instructions over all levels at once, as without a hierarchy
  };
  // `model` instead of the synthesis' own. `limited`: programs are cut no finer than the planner would (see
  // most_chunks_for), and those that cannot be lowered are left out. Keeps a reference to `synthesis`.
  ChunkOptimum(const CallSynthesis& synthesis, Collective collective, const GroupModel& model, Scope scope,
               bool limited);

  // By the binary logarithm of the number of chunks, up to `numbers` of them: the best program for that many chunks of
  // `chunk_bytes` each, as an index into programs(); -1: none.
  std::array<int, chunk_numbers> best(double chunk_bytes, int numbers);

  // All that were the best so far.
  const std::vector<CostedProgram>& programs() const { return programs_; }
  int levels() const { return levels_; }

 private:
  static constexpr int most_costs = most_levels + 2;  // the fill, each level's load, the processors'
  using Costs = std::array<double, most_costs>;

  struct Choice {
    const InstructionShape* shape;
    PipelineCost cost;  // by byte
    std::uint64_t cut;  // how it cuts the data; 0: not at all
    Costs now;          // at the chunk size in question
  };
  struct Edge {
    int next;  // a state
    std::vector<Choice> choices;
    std::vector<int> useful;  // those that are not worse than others at the chunk size in question
  };
  struct Label {
    Costs costs;
    std::uint64_t cut;  // how the way so far cuts the data
    int parent;         // a label; -1: the start
    const Choice* choice;
  };
  struct State {
    LevelState held;
    bool goal = false;
    std::vector<Edge> edges;
    std::vector<int> labels;
    Costs to_go;  // the least of each cost from here to the goal
  };

  int visit(LevelState held, Scope scope);
  Choice choice_of(const InstructionShape& shape, LevelState held) const;
  void prepare(double chunk_bytes);
  void keep_useful(Edge& edge) const;
  void settle_to_go(State& state) const;
  void start_from_known(double chunk_bytes);
  double pipelined(const Costs& costs, int number) const;
  bool may_win(const Costs& costs, const State& at) const;
  void extend(const State& from);
  void consider(State& to, const Label& label);
  void take_goal(const State& goal);
  void take(int label);
  int program_of(int label);
  Program path_of(int label) const;
  int limit_of(const Program& program, std::uint64_t cut);

  const CallSynthesis& synthesis_;
  Collective collective_;
  GroupModel model_;
  InstructionTable table_;
  int levels_, loads_;
  bool limited_, cuts_count_;
  std::vector<State> states_;  // every state after those that follow it
  std::map<std::uint16_t, int> numbers_;
  std::map<std::uint64_t, int> limits_;  // by cut; 0: cannot be lowered
  std::vector<CostedProgram> programs_;
  std::vector<Label> labels_;
  // Of the chunk size in question.
  int numbers_of_chunks_ = 1;
  double start_ = 0;  // seconds a chunk, before the first message
  std::array<double, chunk_numbers> best_seconds_{};
  std::array<int, chunk_numbers> best_program_{};
};

}  // namespace plait::plan
