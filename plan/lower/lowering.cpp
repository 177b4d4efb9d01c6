#include "plan/lower/lowering.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "plan/lower/group_emission.h"
#include "plan/lower/ownership.h"
#include "plan/lower/rank_groups.h"

namespace plait::plan {

namespace {

constexpr std::int64_t most_segments = 1 << 16;  // one a rank of the largest communicator

int group_size(const Grid& grid, const Instruction& instruction) {
  if (instruction.first == 0 && instruction.last == grid.levels() - 1) return grid.ranks();
  int size = 1;
  for (int level = instruction.first; level <= instruction.last; ++level) size *= grid.cardinality(level);
  return size;
}

class Lowering {
 public:
  Lowering(const Program& program, const Grid& grid, bool ordered, BlockMoves& moves)
      : program_(program),
        grid_(grid),
        moves_(moves),
        task_(task_on(grid, moves.semantics().collective(), ordered)),
        ownership_(program, grid, moves.semantics().segments(), task_.owned_pieces),
        state_(task_.start) {}

  void run() {
    for (const Instruction& instruction : program_.instructions) {
      const auto next = apply(task_, state_, instruction.what, instruction.first, instruction.last);
      assert(next);
      const RankGroups groups(grid_, ownership_, state_, instruction);
      for (const WorkGroup& group : wanted(groups))
        if (group.members.size() > 1) emit_in(instruction, groups, group);
      state_ = *next;
    }
    if (task_.ordered) bring_to_root();
  }

 private:
  // In an order that is the same for all groups of a rank, whoever's are wanted.
  std::vector<WorkGroup> wanted(const RankGroups& groups) const {
    if (moves_.only() != BlockMoves::all_ranks) return groups.of(moves_.only());
    std::vector<WorkGroup> all;
    for (int rank = 0; rank < grid_.ranks(); ++rank)
      for (WorkGroup& group : groups.of(rank))
        if (group.members.front() == rank) all.push_back(std::move(group));
    std::ranges::stable_sort(all, {}, [](const WorkGroup& group) { return group.segments.front().first; });
    return all;
  }

  void emit_in(const Instruction& instruction, const RankGroups& groups, const WorkGroup& group) {
    const Algorithm& algorithm = *instruction.algorithm;
    const int pieces = pieces_of(algorithm, instruction.what, static_cast<int>(group.members.size()));
    const auto piece = [&](int number) {
      if (divides(instruction.what)) return groups.piece(group, group.members[static_cast<std::size_t>(number)]);
      return pieces == 1 ? group.segments : groups.cut(group, number, pieces);
    };
    std::vector<int> outer;
    for (const int member : group.members) outer.push_back(grid_.coordinate(member, instruction.first));
    emit(algorithm, instruction.what, {group.members, piece, outer, group.segments}, moves_);
  }

  // Ranks that combine in rank order cannot change places for the sake of the root.
  void bring_to_root() {
    const Semantics& semantics = moves_.semantics();
    Grid::Branch first = grid_.root();
    while (first.level < grid_.levels()) first = grid_.child(first, 0);
    const int holder = grid_.rank_at(first.first);
    if (semantics.collective() != Collective::reduce || holder == semantics.root()) return;
    for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
      moves_.move(holder, semantics.root(), blocks_of(Segments{{0, semantics.segments()}}, chunk));
  }

  const Program& program_;
  const Grid& grid_;
  BlockMoves& moves_;
  SynthesisTask task_;
  Ownership ownership_;
  LevelState state_;
};

Status refuse(const Program& program, const Instruction& instruction, const std::string& why) {
  return {Code::invalid,
          "program " + text_without_algorithms(program) + ": " + text_without_algorithms({{instruction}}) + " " + why};
}

// Segments after which every all-reduce that cuts its data finds a piece for each member.
std::int64_t refine(const Program& program, const Grid& grid, const SynthesisTask& task, std::int64_t segments) {
  LevelState state = task.start;
  for (const Instruction& instruction : program.instructions) {
    if (segments > most_segments) break;
    if (instruction.what == Instruct::all_reduce) {
      std::int64_t held = segments;
      for (int level = 0; level < grid.levels(); ++level)
        if (state.at(level) == LevelStatus::scattered) held /= even_pieces(grid, level);
      const auto pieces = instruction.algorithm->pieces;
      const std::int64_t wanted = pieces == nullptr ? 1 : pieces(group_size(grid, instruction));
      segments *= wanted / std::gcd(held, wanted);
    }
    state = *apply(task, state, instruction.what, instruction.first, instruction.last);
  }
  return segments;
}

}  // namespace

std::uint8_t uneven_levels(const Grid& grid) {
  std::uint8_t uneven = 0;
  for (int level = 0; level < grid.levels(); ++level)
    if (grid.uneven(level)) uneven |= static_cast<std::uint8_t>(1u << level);
  return uneven;
}

bool fits(const Instruction& instruction, const Grid& grid) {
  const bool whole = instruction.first == 0 && instruction.last == grid.levels() - 1;
  const int largest = group_size(grid, instruction);
  bool uneven = false;
  for (int level = instruction.first; level <= instruction.last; ++level)
    uneven |= (uneven_levels(grid) >> level & 1) != 0;
  const Algorithm& algorithm = *instruction.algorithm;
  if (algorithm.needs_whole_node)
    return grid.first_in_node() < grid.levels() && instruction.first == grid.first_in_node() &&
           instruction.last == grid.levels() - 1;
  // Of groups that differ in size some have no power of two: three fits only what any number does.
  return algorithm.fits(instruction.what, largest) && (whole || !uneven || algorithm.fits(instruction.what, 3));
}

SynthesisTask task_on(const Grid& grid, Collective collective, bool ordered) {
  SynthesisTask task = task_of(collective, grid.levels(), uneven_levels(grid), ordered);
  for (int level = 0; level < grid.levels(); ++level)
    if (even_pieces(grid, level) == 0) task.uncut |= static_cast<std::uint8_t>(1u << level);
  return task;
}

Result<int> segments_needed(const Program& program, const Grid& grid, Collective collective, bool ordered) {
  const SynthesisTask task = task_on(grid, collective, ordered);
  LevelState state = task.start;
  std::vector<bool> scattered(static_cast<std::size_t>(grid.levels()));
  std::int64_t segments = 1;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.last >= grid.levels())
      return refuse(program, instruction,
                    "names level " + std::to_string(instruction.last + 1) + " of " + std::to_string(grid.levels()));
    if (!fits(instruction, grid))
      return refuse(program, instruction,
                    "cannot be done by '" + std::string(instruction.algorithm->name) + "' in groups of " +
                        std::to_string(group_size(grid, instruction)));
    const auto next = apply(task, state, instruction.what, instruction.first, instruction.last);
    if (!next) return refuse(program, instruction, "does not apply to what the ranks hold at that point");
    for (int level = instruction.first; scatters_levels(instruction) && level <= instruction.last; ++level) {
      if (!scattered[static_cast<std::size_t>(level)] && !task.owned_pieces) segments *= even_pieces(grid, level);
      scattered[static_cast<std::size_t>(level)] = true;
    }
    state = *next;
  }
  if (!task.is_goal(state))
    return Status(Code::invalid, "program " + text_without_algorithms(program) + ": does not end with the result of " +
                                     std::string(name(collective)));
  if (task.owned_pieces) return grid.ranks();
  segments = refine(program, grid, task, segments);
  if (segments <= most_segments) return static_cast<int>(segments);
  return Status(Code::unsupported, "program " + text_without_algorithms(program) + ": cuts the data into more than " +
                                       std::to_string(most_segments) + " pieces");
}

void lower_program(const Program& program, const Grid& grid, bool ordered, BlockMoves& moves) {
  Lowering(program, grid, ordered, moves).run();
}

}  // namespace plait::plan
