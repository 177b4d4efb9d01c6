// The synthesis against the paper's figures, and its two forms (by level, by rank) against each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "plan/synthesis/enumeration.h"
#include "plan/synthesis/placement.h"
#include "plan/synthesis/reference.h"

namespace plait::plan {
namespace {

using Counts = std::vector<std::uint64_t>;
using Sizes = std::vector<int>;

std::uint64_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

std::string joined(std::span<const int> numbers) {
  std::string result;
  for (const int number : numbers) result += (result.empty() ? "" : " ") + std::to_string(number);
  return "[" + result + "]";
}

bool accepted_by_levels(const Program& program, int levels) {
  const SynthesisTask task = reduction_task(levels);
  LevelState state = task.start;
  for (const Instruction& instruction : program.instructions) {
    const auto next = apply(task, state, instruction.what, instruction.first, instruction.last);
    if (!next) return false;
    state = *next;
  }
  return task.is_goal(state);
}

// --- P2.md, "Figures to reproduce" ---

TEST(Enumeration, CountsOfUpToFiveInstructionsAreThePapers) {
  const Counts expected = {3, 47, 931, 5229, 16617};
  for (int levels = 1; levels <= 5; ++levels)
    EXPECT_EQ(sum(count_programs(reduction_task(levels), 5)), expected[static_cast<std::size_t>(levels - 1)]) << levels;
}

TEST(Enumeration, CompleteCountsAreThePapers) {
  const Counts expected = {3, 47, 1395, 66755, 4731279};
  for (int levels = 1; levels <= 5; ++levels)
    EXPECT_EQ(sum(count_programs(reduction_task(levels), 2 * levels)), expected[static_cast<std::size_t>(levels - 1)]);
}

TEST(Enumeration, TwoLevelsBySizeAreThePapers) {
  EXPECT_EQ(count_programs(reduction_task(2), 4), (Counts{0, 1, 4, 22, 20}));
}

TEST(Enumeration, NoProgramIsLongerThanTwiceTheLevels) {
  for (int levels = 0; levels <= 5; ++levels) {
    const Counts counts = count_programs(reduction_task(levels), 2 * levels + 3);
    EXPECT_EQ(sum(counts), sum(count_programs(reduction_task(levels), 2 * levels))) << levels;
    EXPECT_EQ(counts.size(), static_cast<std::size_t>(2 * levels + 4));
  }
}

struct PaperRow {
  Sizes system, axes, reduce;
  std::uint64_t programs;
};

std::vector<PaperRow> paper_rows() {
  const Sizes a100_2 = {2, 16}, a100_4 = {4, 16}, v100 = {4, 8};
  return {{a100_2, {32}, {0}, 47},
          {a100_2, {2, 16}, {0}, 6},
          {a100_2, {2, 16}, {1}, 50},
          {a100_2, {4, 8}, {0}, 50},
          {a100_2, {4, 8}, {1}, 50},
          {a100_2, {8, 4}, {0}, 50},
          {a100_2, {8, 4}, {1}, 50},
          {a100_2, {16, 2}, {0}, 50},
          {a100_2, {16, 2}, {1}, 6},
          {a100_4, {64}, {0}, 47},
          {a100_4, {2, 32}, {0}, 6},
          {a100_4, {2, 32}, {1}, 94},
          {a100_4, {4, 16}, {0}, 53},
          {a100_4, {4, 16}, {1}, 97},
          {a100_4, {8, 8}, {0}, 97},
          {a100_4, {8, 8}, {1}, 97},
          {a100_4, {16, 4}, {0}, 97},
          {a100_4, {16, 4}, {1}, 53},
          {a100_4, {32, 2}, {0}, 94},
          {a100_4, {32, 2}, {1}, 6},
          {a100_4, {16, 2, 2}, {0, 2}, 188},
          {a100_4, {8, 2, 4}, {0, 2}, 235},
          {a100_4, {4, 2, 8}, {0, 2}, 235},
          {a100_4, {2, 2, 16}, {0, 2}, 188},
          {v100, {32}, {0}, 47},
          {v100, {2, 16}, {0}, 6},
          {v100, {2, 16}, {1}, 94},
          {v100, {4, 8}, {0}, 53},
          {v100, {4, 8}, {1}, 97},
          {v100, {8, 4}, {0}, 97},
          {v100, {8, 4}, {1}, 53}};
}

TEST(Enumeration, EveryRowOfThePaper) {
  for (const PaperRow& row : paper_rows()) {
    std::uint64_t programs = 0;
    for (const ParallelismMatrix& matrix : parallelism_matrices(row.system, row.axes)) {
      const int levels = static_cast<int>(group_levels(matrix, row.reduce).size());
      programs += sum(count_programs(reduction_task(levels), 5));
    }
    EXPECT_EQ(programs, row.programs) << joined(row.system) << ' ' << joined(row.axes) << " over "
                                      << joined(row.reduce);
  }
}

// --- listing ---

TEST(Enumeration, OneLevelListed) {
  const ProgramList list = list_programs(reduction_task(1), 2, 100);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.size(); ++i) texts.push_back(text_without_algorithms(list.program(i)));
  EXPECT_EQ(texts, (std::vector<std::string>{"AR.1", "RS.1 AG.1", "RD.1 BC.1"}));
}

TEST(Enumeration, NothingToDoIsOneEmptyProgram) {
  EXPECT_EQ(count_programs(reduction_task(0), 2), (Counts{1, 0, 0}));
  const ProgramList list = list_programs(reduction_task(0), 2, 100);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list.length(0), 0u);
}

using SortKey = std::vector<std::tuple<Instruct, int, int>>;
SortKey key_of(const Program& program) {
  SortKey key;
  for (const Instruction& step : program.instructions) key.emplace_back(step.what, step.first, step.last);
  return key;
}

// Strictly ascending, so no program stands there twice; and as many of each size as were counted.
void expect_listed_as_counted(const SynthesisTask& task, int most_instructions) {
  const ProgramList list = list_programs(task, most_instructions, std::numeric_limits<std::uint32_t>::max());
  Counts listed(static_cast<std::size_t>(most_instructions + 1));
  SortKey before;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const SortKey key = key_of(list.program(i));
    ASSERT_EQ(key.size(), list.length(i));
    ASSERT_TRUE(i == 0 || std::pair(before.size(), before) < std::pair(key.size(), key)) << i;
    before = key;
    ++listed[key.size()];
  }
  EXPECT_EQ(listed, count_programs(task, most_instructions));
}

TEST(Enumeration, ListsWhatItCountsOnceAndInOrder) {
  for (int levels = 1; levels <= 4; ++levels) expect_listed_as_counted(reduction_task(levels), 2 * levels);
}

TEST(Enumeration, ListsWhatItCountsForOtherCollectives) {
  for (const Collective collective : {Collective::reduce, Collective::bcast, Collective::allgather,
                                      Collective::reduce_scatter, Collective::allreduce})
    for (const std::uint8_t uneven : {0, 2}) expect_listed_as_counted(task_of(collective, 3, uneven, false), 4);
}

TEST(Enumeration, AListEndsAtItsLimit) {
  const SynthesisTask task = reduction_task(3);
  const ProgramList all = list_programs(task, 6, 10000);
  ASSERT_EQ(all.size(), 1395u);
  for (const std::size_t limit : {0, 1, 100, 1394}) {
    const ProgramList some = list_programs(task, 6, limit);
    ASSERT_EQ(some.size(), limit);
    for (std::size_t i = 0; i < limit; ++i) ASSERT_EQ(some.program(i), all.program(i));
  }
}

// AR.1, RD.1, RS.1 AG.1 and RS.1 GA.1, but not RD.1 BC.1, whose first instruction does it.
TEST(Enumeration, AProgramEndsWhereItFirstMeetsTheGoal) {
  EXPECT_EQ(count_programs(task_of(Collective::reduce, 1, 0, false), 4), (Counts{0, 2, 2, 0, 0}));
}

// Gathering and scattering never both occur, so that nothing can go on for ever: a level is scattered, gathered and
// broadcast at the most.
TEST(Enumeration, NoProgramIsLongerThanThreeInstructionsALevel) {
  for (int c = 0; c < planned_collectives; ++c) {
    if (static_cast<Collective>(c) == Collective::alltoall) continue;
    const Counts counts = count_programs(task_of(static_cast<Collective>(c), 3, 0, false), 15);
    EXPECT_EQ(std::accumulate(counts.begin() + 10, counts.end(), std::uint64_t{0}), 0u) << c;
    EXPECT_GT(std::accumulate(counts.begin(), counts.begin() + 10, std::uint64_t{0}), 0u) << c;
  }
}

// --- the level form is the reference form ---

void expect_same_counts(const Sizes& cardinalities, int most_instructions) {
  EXPECT_EQ(count_programs(reduction_task(static_cast<int>(cardinalities.size())), most_instructions),
            count_reference(cardinalities, most_instructions))
      << joined(cardinalities);
}

TEST(Reference, CountsAreThoseOfTheLevelsOnOneAndTwoLevels) {
  for (int a = 2; a <= 12; ++a) {
    expect_same_counts({a}, 4);
    for (int b = 2; a * b <= 12; ++b) expect_same_counts({a, b}, 6);
  }
}

TEST(Reference, CountsAreThoseOfTheLevelsOnThreeAndFourLevels) {
  for (const Sizes& cardinalities : std::vector<Sizes>{{2, 2, 2}, {2, 3, 2}, {3, 2, 2}, {2, 2, 3}})
    expect_same_counts(cardinalities, 7);
  expect_same_counts({2, 2, 2, 2}, 8);
}

TEST(Reference, LevelsOfOneDoNotCount) {
  EXPECT_EQ(count_reference(Sizes{1, 2, 1, 3}, 4), count_reference(Sizes{2, 3}, 4));
  EXPECT_EQ(count_reference(Sizes{1}, 2), (Counts{1, 0, 0}));
}

TEST(Reference, MasterAddsProgramsToThose) {
  for (const Sizes& cardinalities : std::vector<Sizes>{{2, 2}, {2, 4}, {3, 2}})
    EXPECT_EQ(count_reference(cardinalities, 8, true), (Counts{0, 1, 4, 30, 51, 24, 0, 0, 0})) << joined(cardinalities);
  EXPECT_EQ(sum(count_reference(Sizes{2, 2}, 5, true)), 110u);
  EXPECT_EQ(sum(count_reference(Sizes{5}, 4, true)), 3u);  // nothing below to be parallel
}

TEST(Reference, AcceptsEveryListedProgram) {
  for (const Sizes& cardinalities : std::vector<Sizes>{{2, 2, 2}, {3, 2, 2}, {2, 3, 2}}) {
    const ProgramList list = list_programs(reduction_task(3), 6, 10000);
    ASSERT_EQ(list.size(), 1395u);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Program program = list.program(i);
      const Status status = run_reference(program, cardinalities);
      ASSERT_TRUE(status.ok()) << joined(cardinalities) << ' ' << text_without_algorithms(program) << ": "
                               << status.message();
    }
  }
}

// Whether both forms accept it; a refusal names the instruction or the end.
bool same_verdict(const Program& program, const Sizes& cardinalities) {
  const Status status = run_reference(program, cardinalities);
  const bool by_levels = accepted_by_levels(program, static_cast<int>(cardinalities.size()));
  EXPECT_EQ(status.ok(), by_levels) << text_without_algorithms(program) << ": " << status.message();
  if (!status.ok()) {
    EXPECT_EQ(status.code(), Code::invalid);
    EXPECT_NE(status.message().find("rank "), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("chunk "), std::string::npos) << status.message();
  }
  return by_levels;
}

TEST(Reference, AProgramThatLostAnInstructionGetsTheSameVerdictFromBoth) {
  const ProgramList list = list_programs(reduction_task(3), 6, 10000);
  int refused = 0;
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t lost = 0; lost < list.length(i); ++lost) {
      Program program = list.program(i);
      program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(lost));
      refused += !same_verdict(program, {2, 2, 2});
    }
  EXPECT_GT(refused, 1395);
}

Program mutated(Program program, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  std::vector<Instruction>& steps = program.instructions;
  Instruction step{static_cast<Instruct>(below(p2_instructs)), static_cast<int>(below(3)), 2, &algorithms::ring, false};
  step.last = step.first + static_cast<int>(below(static_cast<std::size_t>(3 - step.first)));
  switch (below(3)) {
    case 0:
      steps[below(steps.size())] = step;
      break;
    case 1:
      steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(below(steps.size() + 1)), step);
      break;
    default:
      std::swap(steps[below(steps.size())], steps[below(steps.size())]);
  }
  return program;
}

TEST(Reference, AMutatedProgramGetsTheSameVerdictFromBoth) {
  const ProgramList list = list_programs(reduction_task(3), 6, 10000);
  int accepted = 0, refused = 0;
  for (unsigned seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Program program = mutated(list.program(random() % list.size()), random);
    ++(same_verdict(program, {2, 3, 2}) ? accepted : refused);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

TEST(Reference, ARefusalSaysWhichRuleWhereAndWhy) {
  struct Case {
    Sizes cardinalities;
    const char *program, *message;
  };
  for (const Case& c : std::vector<Case>{
           {{2, 2}, "AG.2", "AG.2: rank 1 and rank 0 both hold chunk 0"},
           {{2, 2}, "RS.2 AG.1", "AG.1: rank 2 and rank 0 both hold chunk 0"},
           {{2, 2}, "RD.2 AG.1", "AG.1: rank 2 and rank 0 both hold chunk 0"},
           {{2, 2}, "RD.2 AG.2", "AG.2: rank 1 holds nothing, not even chunk 0; expected something from every rank"},
           {{2, 2}, "AR.2", "after the last instruction rank 0 lacks the contribution of rank 2 in chunk 0"},
           {{2, 2}, "RS.2 AR.1", "after the last instruction rank 0 lacks the contribution of rank 0 in chunk 2"},
           {{2, 2},
            "AR.2 AR.12",
            "AR.12: rank 1 and rank 0 both have the contribution of rank 0 in chunk 0; expected it once"},
           {{2, 2},
            "RD.2 AR.12",
            "AR.12: rank 0 holds chunk 0 but rank 1 does not; expected the same chunks in all of a group"},
           {{2, 2}, "BC.1", "BC.1: rank 2 has the contribution of rank 2 in chunk 0, which the root, rank 0, lacks"},
           {{2, 2},
            "AR.12 BC.2",
            "BC.2: no rank of the group of rank 0 would get anything new in chunk 0 or any other"},
           {{2, 2}, "AR.3", "AR.3: expected levels between 1 and 2"},
           {{2, 2}, "GA.1", "GA.1: expected AR, RS, AG, RD or BC"},
           {{2, 1, 2}, "AR.2", "AR.2: groups of one rank"},
           {{0}, "AR.1", "a level of 0, expected at least 1"}}) {
    const Status status = run_reference(*parse_program(c.program), c.cardinalities);
    EXPECT_EQ(status.code(), Code::invalid) << c.program;
    EXPECT_EQ(status.message(), c.message);
  }
}

TEST(Reference, MoreThanAWordOfRanksAndTooMany) {
  const Program program = *parse_program("RS.2 AR.1 AG.2");
  EXPECT_TRUE(run_reference(program, Sizes{5, 14}).ok());
  EXPECT_EQ(run_reference(*parse_program("RS.2 AR.1"), Sizes{5, 14}).message(),
            "after the last instruction rank 0 lacks the contribution of rank 0 in chunk 5");
  EXPECT_EQ(run_reference(*parse_program("AR.2"), Sizes{2, 65}).message(),
            "after the last instruction rank 0 lacks the contribution of rank 65 in chunk 0");
  EXPECT_EQ(run_reference(program, Sizes{65536, 65536}).code(), Code::unsupported);
  EXPECT_EQ(run_reference(program, Sizes{2, 257}).code(), Code::unsupported);
}

// --- placement ---

struct Grid {
  Sizes system, axes;
};

std::vector<Grid> grids() {
  return {{{4, 16}, {8, 8}},
          {{4, 16}, {16, 2, 2}},
          {{2, 16}, {32}},
          {{64}, {4, 16}},
          {{2, 3, 4}, {6, 4}},
          {{6, 6}, {4, 9}},
          {{3, 5}, {5, 3}},
          {{1, 4, 1}, {2, 1, 2}},
          {{2, 2, 2, 2}, {4, 4}},
          {{12, 5}, {10, 6}},
          {{1}, {1}},
          {{2, 2, 3}, {12}},
          {{7}, {7}},
          {{6, 10, 14}, {30, 28}},
          {{2, 6}, {3, 2, 2}}};
}

// All matrices of positive entries with these columns and rows, from all tuples of entries.
std::size_t count_by_trial(const Grid& grid, std::size_t cell = 0, ParallelismMatrix matrix = {}) {
  const std::size_t levels = grid.system.size(), axis = cell / levels, level = cell % levels;
  if (cell == 0) matrix.rows.assign(grid.axes.size(), Sizes(levels, 1));
  if (axis == grid.axes.size()) {
    for (std::size_t j = 0; j < levels; ++j) {
      int column = 1;
      for (const Sizes& row : matrix.rows) column *= row[j];
      if (column != grid.system[j]) return 0;
    }
    return 1;
  }
  std::size_t found = 0;
  for (int entry = 1; entry <= std::min(grid.system[level], grid.axes[axis]); ++entry) {
    matrix.rows[axis][level] = entry;
    const Sizes& row = matrix.rows[axis];
    const int so_far =
        std::accumulate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(level) + 1, 1, std::multiplies<>());
    if (grid.axes[axis] % so_far != 0 || (level + 1 == levels && so_far != grid.axes[axis])) continue;
    found += count_by_trial(grid, cell + 1, matrix);
  }
  return found;
}

TEST(Placement, MatricesMultiplyToTheSystemAndToTheAxes) {
  for (const Grid& grid : grids()) {
    const auto matrices = parallelism_matrices(grid.system, grid.axes);
    EXPECT_EQ(matrices.size(), count_by_trial(grid)) << joined(grid.system) << joined(grid.axes);
    for (const ParallelismMatrix& matrix : matrices) {
      Sizes columns(grid.system.size(), 1), rows(grid.axes.size(), 1);
      ASSERT_EQ(matrix.rows.size(), rows.size());
      for (std::size_t axis = 0; axis < rows.size(); ++axis)
        for (std::size_t level = 0; level < columns.size(); ++level) {
          columns[level] *= matrix.rows[axis][level];
          rows[axis] *= matrix.rows[axis][level];
        }
      EXPECT_EQ(columns, grid.system) << text(matrix);
      EXPECT_EQ(rows, grid.axes) << text(matrix);
    }
    EXPECT_EQ(std::adjacent_find(matrices.begin(), matrices.end(),
                                 [](const auto& a, const auto& b) { return !(a.rows < b.rows); }),
              matrices.end());
  }
}

TEST(Placement, MatricesOfThePapersSystem) {
  std::vector<std::string> texts;
  for (const auto& matrix : parallelism_matrices(Sizes{4, 16}, Sizes{8, 8})) texts.push_back(text(matrix));
  EXPECT_EQ(texts, (std::vector<std::string>{"[[1 8] [4 2]]", "[[2 4] [2 4]]", "[[4 2] [1 8]]"}));
}

TEST(Placement, ALargePrimeDoesNotTakeLong) {
  EXPECT_EQ(parallelism_matrices(Sizes{2147483647}, Sizes{2147483647, 1}).size(), 1u);
}

TEST(Placement, GroupLevelsDropTheOnes) {
  const ParallelismMatrix matrix{{{1, 2, 2}, {4, 1, 3}, {1, 1, 5}}};
  const auto levels_over = [&](const Sizes& reduce) {
    std::vector<std::pair<int, int>> levels;
    for (const GroupLevel& level : group_levels(matrix, reduce))
      levels.emplace_back(level.cardinality, level.system_level);
    return levels;
  };
  using Levels = std::vector<std::pair<int, int>>;
  EXPECT_EQ(levels_over({0}), (Levels{{2, 1}, {2, 2}}));
  EXPECT_EQ(levels_over({2}), (Levels{{5, 2}}));
  EXPECT_EQ(levels_over({1, 0}), (Levels{{4, 0}, {2, 1}, {6, 2}}));
  EXPECT_EQ(levels_over({}), Levels{});
}

TEST(Placement, DevicesOfAGridAreAPermutation) {
  for (const Grid& grid : grids())
    for (const ParallelismMatrix& matrix : parallelism_matrices(grid.system, grid.axes)) {
      Sizes devices = devices_of_grid(grid.system, grid.axes, matrix);
      std::sort(devices.begin(), devices.end());
      Sizes all(devices.size());
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(devices, all) << text(matrix);
      EXPECT_EQ(static_cast<int>(all.size()),
                std::accumulate(grid.axes.begin(), grid.axes.end(), 1, std::multiplies<>()));
    }
}

TEST(Placement, DevicesOfAGridByHand) {
  const auto devices = [](const std::vector<Sizes>& rows) {
    return devices_of_grid(Sizes{2, 4}, Sizes{4, 2}, ParallelismMatrix{rows});
  };
  EXPECT_EQ(devices({{1, 4}, {2, 1}}), (Sizes{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(devices({{2, 2}, {1, 2}}), (Sizes{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(devices_of_grid(Sizes{2, 4}, Sizes{2, 4}, ParallelismMatrix{{{1, 2}, {2, 2}}}),
            (Sizes{0, 1, 4, 5, 2, 3, 6, 7}));
}

// How many entities of the system's level the devices are spread over.
int entities(const Sizes& devices, const Sizes& system, std::size_t level) {
  const int below =
      std::accumulate(system.begin() + static_cast<std::ptrdiff_t>(level) + 1, system.end(), 1, std::multiplies<>());
  std::set<int> found;
  for (const int device : devices) found.insert(device / below);
  return static_cast<int>(found.size());
}

// The ranks that differ from rank 0 in their coordinate on `axis` only.
Sizes group_of_rank_0(const Sizes& devices, const Sizes& axes, std::size_t axis) {
  const int stride =
      std::accumulate(axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, axes.end(), 1, std::multiplies<>());
  Sizes group;
  for (int i = 0; i < axes[axis]; ++i) group.push_back(devices[static_cast<std::size_t>(i * stride)]);
  return group;
}

TEST(Placement, AnAxisIsSpreadOverEachLevelAsItsRowSays) {
  for (const Grid& grid : grids())
    for (const ParallelismMatrix& matrix : parallelism_matrices(grid.system, grid.axes))
      for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
        const Sizes group = group_of_rank_0(devices_of_grid(grid.system, grid.axes, matrix), grid.axes, axis);
        int expected = 1;
        for (std::size_t level = 0; level < grid.system.size(); ++level) {
          expected *= matrix.rows[axis][level];
          EXPECT_EQ(entities(group, grid.system, level), expected) << text(matrix) << ' ' << axis << ' ' << level;
        }
      }
}

TEST(Placement, GoodRequests) {
  for (const GridRequest& request : std::vector<GridRequest>{{{4, 16}, {8, 8}, {1}},
                                                             {{4, 16}, {16, 2, 2}, {2, 0}},
                                                             {{1}, {1}, {0}},
                                                             {{2, 2, 2, 2, 2, 2, 2, 2}, {256}, {0}},
                                                             {{256}, {2, 2, 2, 2, 2, 2, 2, 2}, {7}},
                                                             {{2147483647}, {2147483647}, {0}}})
    EXPECT_TRUE(check(request).ok()) << check(request).message();
}

TEST(Placement, BadRequestsNameTheNumberAndWhatWasExpected) {
  struct Case {
    GridRequest request;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {{{4, 16}, {4, 8}, {0}}, "--system 4,16 has 64 ranks but the axes 4,8 multiply to 32"},
           {{{4, 0}, {4}, {0}}, "--system 4,0: 0 is not a size, expected at least 1"},
           {{{4}, {4, -2}, {0}}, "--axes 4,-2: -2 is not a size, expected at least 1"},
           {{{}, {4}, {0}}, "--system: no number given, expected 1 to 8 levels"},
           {{{4}, {}, {0}}, "--axes: no number given, expected 1 to 8 axes"},
           {{{2, 2, 2, 2, 2, 2, 2, 2, 2}, {512}, {0}}, "--system 2,2,2,2,2,2,2,2,2 has 9 levels, expected at most 8"},
           {{{512}, {2, 2, 2, 2, 2, 2, 2, 2, 2}, {0}}, "--axes 2,2,2,2,2,2,2,2,2 has 9 axes, expected at most 8"},
           {{{65536, 32768}, {2}, {0}},
            "--system 65536,32768 multiplies to too many ranks, expected at most 2147483647"},
           {{{2147483647, 2147483647, 2147483647}, {2}, {0}},
            "--system 2147483647,2147483647,2147483647 multiplies to too many ranks, expected at most 2147483647"},
           {{{4}, {65536, 65536, 65536, 65536}, {0}},
            "--axes 65536,65536,65536,65536 multiplies to too many ranks, expected at most 2147483647"},
           {{{4}, {2, 2}, {}}, "--reduce: no axis given, expected at least one"},
           {{{4}, {2, 2}, {0, 2}}, "--reduce 0,2: there is no axis 2, expected 0 to 1"},
           {{{4}, {2, 2}, {-1}}, "--reduce -1: there is no axis -1, expected 0 to 1"},
           {{{4}, {2, 2}, {1, 1}}, "--reduce 1,1: axis 1 is named twice, expected once"}}) {
    const Status status = check(c.request);
    EXPECT_EQ(status.code(), Code::invalid) << c.message;
    EXPECT_EQ(status.message(), c.message);
  }
}

}  // namespace
}  // namespace plait::plan
