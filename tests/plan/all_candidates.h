// Plans of every kind for one collective on one hierarchy, for tests.
#pragma once

#include <random>
#include <vector>

#include "plan/choose/candidate.h"
#include "plan/lower/lowering.h"
#include "plan/synthesis/enumeration.h"
#include "plan/synthesis/instruction_table.h"

namespace plait::plan {

inline Call sized_call(Collective collective, bool commutative, std::size_t count) {
  return {.collective = collective, .count = count, .commutative = commutative};
}

// All programs of up to `most_instructions` (at most `limit`), each with algorithms drawn at random from those that fit
// its groups; `chunks` chunks. Alltoall: all exchanges.
inline std::vector<Candidate> all_candidates(Collective collective, const Hierarchy& hierarchy, bool commutative,
                                             int most_instructions, std::size_t limit, int chunks,
                                             std::mt19937& random) {
  const Machine machine = default_machine();
  if (collective == Collective::alltoall)
    return candidates(sized_call(collective, true, 1), {.hierarchy = hierarchy, .machine = machine}, 4);
  const bool ordered = !commutative && reduces(collective);
  bool in_rank_order = true;
  for (int rank = 0; rank < hierarchy.ranks(); ++rank) in_rank_order &= hierarchy.vrank_of(rank) == rank;
  const GridKind kind = ordered && !in_rank_order ? GridKind::rank_order : GridKind::full;
  const Grid grid(hierarchy, kind, -1);
  const SynthesisTask task = task_of(collective, grid.levels(), uneven_levels(grid), ordered);
  const ProgramList list = list_programs(task, most_instructions, limit);
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Candidate candidate{.name = "", .grid = kind, .program = list.program(i), .chunks = chunks};
    for (Instruction& instruction : candidate.program.instructions) {
      do instruction.algorithm = all_algorithms[random() % all_algorithms.size()];
      while (!fits(instruction, grid) || (ordered && !keeps_order(instruction)));
    }
    candidate.name = text(candidate.program);
    found.push_back(std::move(candidate));
  }
  return found;
}

}  // namespace plait::plan
