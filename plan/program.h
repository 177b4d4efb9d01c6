// Programs of the P² method (Xie et al., MLSys 2022, section 3): a collective as a list of smaller ones, each over all
// groups of ranks that agree on the coordinates outside a range of levels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/algorithm/algorithms.h"
#include "plan/builder.h"
#include "plan/grid.h"

namespace plait {

enum class Instruct : std::uint8_t { all_reduce, reduce_scatter, all_gather, reduce, broadcast };
enum class Algorithm : std::uint8_t { ring, recursive_doubling, direct, dissemination, binomial, chain, flat };
std::string_view name(Algorithm algorithm);

// One instruction over levels first..last of the grid (0-based, outermost is 0, both included).
struct Instruction {
  Instruct what;
  int first, last;
  Algorithm algorithm;
  bool operator==(const Instruction&) const = default;
};

struct Program {
  std::vector<Instruction> instructions;
};

// "RS.2(ring) AR.1(ring) AG.2(ring)": levels are numbered from 1, outermost first; "AG.12" spans levels 1 and 2.
// An algorithm that is left out is the first that fits: ring for AR, RS and AG, binomial for RD and BC.
Result<Program> parse_program(std::string_view text);
std::string text(const Program& program);

// Segments into which the vector must be cut for this program; fails when it names a level that the grid lacks.
Result<int> segments_needed(const Program& program, const Grid& grid);

// Emits the program's messages. The collective is allreduce or barrier, reduce, bcast, allgather(v), or
// reduce_scatter(_block); reduce and bcast use the rank with all coordinates 0 as root. Fails when an instruction does
// not apply to the data at that point (P²'s rules of validity), or when RS or AG meet a grid that is not uniform.
Status lower_program(const Program& program, const Grid& grid, Builder& builder);

}  // namespace plait
