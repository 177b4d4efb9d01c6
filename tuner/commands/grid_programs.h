// The programs of one reduction group, counted and priced, for `plait synth` and `plait place`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plan/synthesis/search.h"
#include "tuner/commands/grid_options.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// The group that `reduce` spans in one matrix, next to all the others on the system.
struct GridGroup {
  std::vector<GroupLevel> levels;
  GroupModel model;
  SynthesisTask task;
};
GridGroup group_of(const PlacedGrid& grid, const ParallelismMatrix& matrix, std::span<const int> reduce,
                   Collective collective);

// Programs by their number of instructions, and how many of the cheapest to show.
struct ProgramLimits {
  int most_instructions = 5;
  std::size_t top = 10;
};

struct PricedPrograms {
  std::uint64_t count = 0;              // of all programs of up to most_instructions; 2^64-1 stands for that and more
  std::vector<PricedProgram> cheapest;  // each program once, ascending; none for a group of one rank
};

// A number of programs up to which all of them are priced one by one. Of more, the shortest so many are, and with them
// those that the search over the level states finds.
inline constexpr std::size_t most_listed = 5000;

PricedPrograms priced_programs(const PlacedGrid& grid, const GridGroup& group, const ProgramLimits& limits);

// The cheapest program of any length. A group of one rank has none: an empty one of 0 seconds. Fails (unsupported) when
// the algorithms allow none.
Result<PricedProgram> best_program(const PlacedGrid& grid, const GridGroup& group);

// One all-reduce over all levels: what a program without a hierarchy does.
Result<PricedProgram> plain_allreduce(const PlacedGrid& grid, const GridGroup& group);

std::uint64_t saturating_sum(std::uint64_t one, std::uint64_t other);

}  // namespace plait::tuner
