#include "tuner/commands/grid_programs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "plan/algorithm/registry.h"
#include "plan/synthesis/enumeration.h"

namespace plait::tuner {
namespace {

// Levels whose programs, 1,395 of three, are all priced rather than searched, which is exact.
constexpr int most_levels_listed = 3;

// The rings for AR, RS and AG, the chain for RD and BC: what NCCL does.
constexpr std::array ring_algorithms = {&algorithms::ring, &algorithms::chain};
constexpr std::array tree_algorithms = {&algorithms::ring, &algorithms::chain, &algorithms::double_tree};

SearchOptions search_options(const PlacedGrid& grid) {
  SearchOptions options;
  options.bytes = grid.bytes;
  if (grid.algorithms == AlgorithmChoice::ring) options.algorithms = ring_algorithms;
  if (grid.algorithms == AlgorithmChoice::tree) options.algorithms = tree_algorithms;
  return options;
}

// With the trees, all-reduces have no choice; the other instructions' algorithms follow from the bit set.
Program constrained(Program program, AlgorithmChoice choice) {
  for (Instruction& instruction : program.instructions) {
    instruction.algorithm_given = choice == AlgorithmChoice::tree && instruction.what == Instruct::all_reduce;
    if (instruction.algorithm_given) instruction.algorithm = &algorithms::double_tree;
  }
  return program;
}

bool cheaper(const PricedProgram& one, const PricedProgram& other) { return one.seconds < other.seconds; }

class Pricing {
 public:
  Pricing(const PlacedGrid& grid, const GridGroup& group)
      : grid_(grid), group_(group), options_(search_options(grid)) {}

  // Programs that the algorithms cannot carry out have no price and are left out.
  void add(const Program& program) {
    if (!seen_.insert(text_without_algorithms(program)).second) return;
    auto priced = price_program(group_.task, group_.model, options_, constrained(program, grid_.algorithms));
    if (priced.ok()) priced_.push_back(std::move(*priced));
  }

  void add_shortest(int most_instructions) {
    const ProgramList list = list_programs(group_.task, most_instructions, most_listed);
    for (std::size_t index = 0; index < list.size(); ++index) add(list.program(index));
  }

  // The search returns a program several times, with different algorithms, and programs of any length.
  void add_searched(int most_instructions, std::size_t wanted) {
    constexpr std::size_t repeats = 8;
    const int count = static_cast<int>(std::min(wanted, most_listed) * repeats);
    for (const PricedProgram& found : cheapest_programs(group_.task, group_.model, options_, count)) {
      if (found.program.instructions.size() <= static_cast<std::size_t>(most_instructions)) add(found.program);
    }
  }

  std::vector<PricedProgram> cheapest(std::size_t top) && {
    std::stable_sort(priced_.begin(), priced_.end(), cheaper);
    if (priced_.size() > top) priced_.resize(top);
    return std::move(priced_);
  }

 private:
  const PlacedGrid& grid_;
  const GridGroup& group_;
  SearchOptions options_;
  std::set<std::string> seen_;
  std::vector<PricedProgram> priced_;
};

Status no_program(const PlacedGrid& grid) {
  return {Code::unsupported,
          std::string("no program with --algorithms ") + (grid.algorithms == AlgorithmChoice::tree ? "tree" : "ring")};
}

}  // namespace

GridGroup group_of(const PlacedGrid& grid, const ParallelismMatrix& matrix, std::span<const int> reduce,
                   Collective collective) {
  GridRequest request = grid.request;
  request.reduce.assign(reduce.begin(), reduce.end());
  GridGroup group;
  group.levels = group_levels(matrix, reduce);
  group.model = group_model(grid.machine, request, matrix);
  const int levels = static_cast<int>(group.levels.size());
  group.task = collective == Collective::allreduce ? reduction_task(levels) : task_of(collective, levels, 0, false);
  return group;
}

PricedPrograms priced_programs(const PlacedGrid& grid, const GridGroup& group, const ProgramLimits& limits) {
  PricedPrograms result;
  if (group.levels.empty()) return result;
  for (const std::uint64_t count : count_programs(group.task, limits.most_instructions)) {
    result.count = saturating_sum(result.count, count);
  }
  if (limits.top == 0) return result;
  Pricing pricing(grid, group);
  pricing.add_shortest(limits.most_instructions);
  if (result.count > most_listed) pricing.add_searched(limits.most_instructions, limits.top);
  result.cheapest = std::move(pricing).cheapest(limits.top);
  return result;
}

Result<PricedProgram> best_program(const PlacedGrid& grid, const GridGroup& group) {
  if (group.levels.empty()) return PricedProgram{};
  const int levels = static_cast<int>(group.levels.size());
  if (levels <= most_levels_listed || grid.algorithms == AlgorithmChoice::tree) {
    auto priced = priced_programs(grid, group, {.most_instructions = 2 * levels, .top = 1});
    if (priced.cheapest.empty()) return no_program(grid);
    return std::move(priced.cheapest.front());
  }
  const auto plain = plain_allreduce(grid, group);
  auto found = cheapest_programs(group.task, group.model, search_options(grid), 1);
  if (found.empty() || (plain.ok() && cheaper(*plain, found.front()))) return plain;
  return std::move(found.front());
}

Result<PricedProgram> plain_allreduce(const PlacedGrid& grid, const GridGroup& group) {
  if (group.levels.empty()) return PricedProgram{};
  Program program;
  program.instructions.push_back({.what = Instruct::all_reduce, .last = static_cast<int>(group.levels.size()) - 1});
  return price_program(group.task, group.model, search_options(grid), constrained(program, grid.algorithms));
}

std::uint64_t saturating_sum(std::uint64_t one, std::uint64_t other) {
  return one > std::numeric_limits<std::uint64_t>::max() - other ? std::numeric_limits<std::uint64_t>::max()
                                                                 : one + other;
}

}  // namespace plait::tuner
