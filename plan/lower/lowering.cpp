#include "plan/lower/lowering.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>

#include "plan/algorithm/algorithm.h"

namespace plait::plan {

namespace {

// Whether each member has pieces of its own, before or after.
bool divides(Instruct what) {
  return what == Instruct::reduce_scatter || what == Instruct::all_gather || what == Instruct::gather ||
         what == Instruct::scatter;
}

bool scatters_levels(const Instruction& instruction) {
  return instruction.what == Instruct::reduce_scatter || instruction.what == Instruct::scatter;
}

int group_size(const Grid& grid, const Instruction& instruction) {
  if (instruction.first == 0 && instruction.last == grid.levels - 1) return grid.ranks();
  int size = 1;
  for (int level = instruction.first; level <= instruction.last; ++level)
    size *= grid.cardinality[static_cast<std::size_t>(level)];
  return size;
}

constexpr int most_pieces_a_child = 4;
constexpr std::int64_t most_segments = 1 << 14;

// The least common multiple of a level's group sizes: into so many pieces its data can be cut evenly for each group. 0
// when that takes more than a few pieces a child.
int even_pieces(const Grid& grid, int level) {
  const int most = most_pieces_a_child * grid.cardinality[static_cast<std::size_t>(level)];
  int pieces = 1;
  for (const auto& sizes : grid.children) {
    pieces = std::lcm(pieces, sizes[static_cast<std::size_t>(level)]);
    if (pieces > most) return 0;
  }
  return pieces;
}

// How segments are dealt out along the levels. A segment has a digit at every level that the program scatters; the
// digit says which child of each group at that level keeps the segment when the level is scattered, always the same
// one.
class Ownership {
 public:
  // `by_rank`: each rank has a segment of its own.
  Ownership(const Program& program, const Grid& grid, int segments, bool by_rank) : grid_(grid), by_rank_(by_rank) {
    if (by_rank_) return;
    std::vector<int> order;  // levels in the order in which they are scattered: the first cut is into contiguous halves
    for (const Instruction& instruction : program.instructions)
      for (int level = instruction.first; scatters_levels(instruction) && level <= instruction.last; ++level)
        if (std::find(order.begin(), order.end(), level) == order.end()) order.push_back(level);
    radix_.assign(static_cast<std::size_t>(grid.levels), 1);
    stride_.assign(static_cast<std::size_t>(grid.levels), 1);
    int stride = segments;
    for (const int level : order) {
      const auto l = static_cast<std::size_t>(level);
      radix_[l] = even_pieces(grid, level);
      stride /= radix_[l];
      stride_[l] = stride;
    }
  }

  // Which child of `rank`'s group at the level keeps the segment.
  int child(int rank, int level, int segment) const {
    const auto l = static_cast<std::size_t>(level);
    const int children = grid_.children[static_cast<std::size_t>(rank)][l];
    // In a group that its owner is not in, any child will do.
    if (by_rank_) return grid_.coordinate[static_cast<std::size_t>(segment)][l] % children;
    return segment / stride_[l] % radix_[l] * children / radix_[l];
  }

 private:
  const Grid& grid_;
  bool by_rank_;
  std::vector<int> radix_, stride_;  // by level
};

// One group of an instruction, and the segments that it works on.
struct WorkGroup {
  std::vector<int> members;
  Segments segments;
};

class Lowering {
 public:
  Lowering(const Program& program, const Grid& grid, bool ordered, Builder& builder)
      : program_(program),
        grid_(grid),
        builder_(builder),
        task_(task_on(grid, builder.semantics().collective(), ordered)),
        ownership_(program, grid, builder.semantics().segments(), task_.owned_pieces),
        state_(task_.start) {}

  void run() {
    for (const Instruction& instruction : program_.instructions) {
      const auto next = apply(task_, state_, instruction.what, instruction.first, instruction.last);
      assert(next);
      for (const WorkGroup& group : groups(instruction))
        if (group.members.size() > 1) emit(instruction, group);
      state_ = *next;
    }
    if (task_.ordered) bring_to_root();
  }

 private:
  int coordinate(int rank, int level) const {
    return grid_.coordinate[static_cast<std::size_t>(rank)][static_cast<std::size_t>(level)];
  }

  static bool covers(const Instruction& instruction, int level) {
    return level >= instruction.first && level <= instruction.last;
  }

  // Whether the rank holds the segment, were the levels of the instruction full.
  bool takes_part(int rank, int segment, const Instruction& instruction) const {
    for (int level = 0; level < grid_.levels; ++level) {
      if (covers(instruction, level)) continue;
      const LevelStatus status = state_.at(level);
      if (status == LevelStatus::rooted && coordinate(rank, level) != 0) return false;
      if (status == LevelStatus::scattered && coordinate(rank, level) != ownership_.child(rank, level, segment))
        return false;
    }
    return true;
  }

  // In a broadcast over levels of which some are full, those who have the data already take no part, unless the
  // algorithm does nothing without them.
  bool receives_or_roots(int rank, const Instruction& instruction) const {
    if (instruction.what != Instruct::broadcast || instruction.algorithm->needs_whole_node) return true;
    bool holds = true, root = true;
    for (int level = instruction.first; level <= instruction.last; ++level) {
      if (state_.at(level) == LevelStatus::rooted && coordinate(rank, level) != 0) holds = false;
      if (coordinate(rank, level) != 0) root = false;
    }
    return root || !holds;
  }

  // What the members of one group have in common: the coordinates outside the range. Where a level is scattered or
  // rooted the segment says which child takes part, and in uneven groups it need not be the same one.
  std::vector<int> outside(int rank, const Instruction& instruction) const {
    std::vector<int> key = grid_.coordinate[static_cast<std::size_t>(rank)];
    for (int level = 0; level < grid_.levels; ++level) {
      const LevelStatus status = state_.at(level);
      const bool chosen =
          level > instruction.last && (status == LevelStatus::scattered || status == LevelStatus::rooted);
      if (covers(instruction, level) || chosen) key[static_cast<std::size_t>(level)] = 0;
    }
    return key;
  }

  // Segments that the same ranks hold are worked on together.
  std::vector<WorkGroup> groups(const Instruction& instruction) const {
    std::map<std::vector<int>, Segments> segments_of;  // by who takes part
    std::vector<int> ranks;
    for (int segment = 0; segment < builder_.semantics().segments(); ++segment) {
      ranks.clear();
      for (const int rank : grid_.order)
        if (takes_part(rank, segment, instruction) && receives_or_roots(rank, instruction)) ranks.push_back(rank);
      segments_of[ranks].push_back(segment);
    }
    std::vector<WorkGroup> result;
    for (const auto& [participants, segments] : segments_of) {
      std::map<std::vector<int>, std::vector<int>> by_outside;
      for (const int rank : participants) by_outside[outside(rank, instruction)].push_back(rank);
      for (auto& [key, members] : by_outside) result.push_back({std::move(members), segments});
    }
    for (WorkGroup& group : result) sort_members(group.members, instruction);
    return result;
  }

  // By their coordinates within the range; the root comes first.
  void sort_members(std::vector<int>& members, const Instruction& instruction) const {
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
      for (int level = instruction.first; level <= instruction.last; ++level)
        if (coordinate(a, level) != coordinate(b, level)) return coordinate(a, level) < coordinate(b, level);
      return false;
    });
  }

  // Of each member, the segments that are its own when the instruction's levels are scattered.
  std::vector<Segments> pieces(const Instruction& instruction, const WorkGroup& group) const {
    std::vector<Segments> result(group.members.size());
    for (std::size_t i = 0; i < group.members.size(); ++i)
      for (const int segment : group.segments)
        if (owns(group.members[i], segment, instruction)) result[i].push_back(segment);
    return result;
  }

  bool owns(int rank, int segment, const Instruction& instruction) const {
    for (int level = instruction.first; level <= instruction.last; ++level)
      if (coordinate(rank, level) != ownership_.child(rank, level, segment)) return false;
    return true;
  }

  void emit(const Instruction& instruction, const WorkGroup& group) {
    const std::vector<Segments> own = divides(instruction.what) ? pieces(instruction, group) : std::vector<Segments>();
    std::vector<int> outer;
    for (const int member : group.members) outer.push_back(coordinate(member, instruction.first));
    instruction.algorithm->emit(builder_, {instruction.what, group.members, group.segments, own, outer});
  }

  // Ranks that combine in rank order cannot change places for the sake of the root.
  void bring_to_root() {
    const Semantics& semantics = builder_.semantics();
    const int holder = grid_.order.front();
    if (semantics.collective() != Collective::reduce || holder == semantics.root()) return;
    Segments all(static_cast<std::size_t>(semantics.segments()));
    std::iota(all.begin(), all.end(), 0);
    for (int chunk = 0; chunk < semantics.chunks(); ++chunk)
      builder_.move(holder, semantics.root(), blocks_of(semantics, all, chunk));
  }

  const Program& program_;
  const Grid& grid_;
  Builder& builder_;
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
      for (int level = 0; level < grid.levels; ++level)
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
  for (int level = 0; level < grid.levels; ++level) {
    const auto l = static_cast<std::size_t>(level);
    for (const auto& sizes : grid.children)
      if (sizes[l] != grid.cardinality[l]) uneven |= static_cast<std::uint8_t>(1u << level);
  }
  return uneven;
}

bool fits(const Instruction& instruction, const Grid& grid) {
  const bool whole = instruction.first == 0 && instruction.last == grid.levels - 1;
  const int largest = group_size(grid, instruction);
  bool uneven = false;
  for (int level = instruction.first; level <= instruction.last; ++level)
    uneven |= (uneven_levels(grid) >> level & 1) != 0;
  const Algorithm& algorithm = *instruction.algorithm;
  if (algorithm.needs_whole_node)
    return grid.first_in_node < grid.levels && instruction.first == grid.first_in_node &&
           instruction.last == grid.levels - 1;
  // Of groups that differ in size some have no power of two: three fits only what any number does.
  return algorithm.fits(instruction.what, largest) && (whole || !uneven || algorithm.fits(instruction.what, 3));
}

SynthesisTask task_on(const Grid& grid, Collective collective, bool ordered) {
  SynthesisTask task = task_of(collective, grid.levels, uneven_levels(grid), ordered);
  for (int level = 0; level < grid.levels; ++level)
    if (even_pieces(grid, level) == 0) task.uncut |= static_cast<std::uint8_t>(1u << level);
  return task;
}

Result<int> segments_needed(const Program& program, const Grid& grid, Collective collective, bool ordered) {
  const SynthesisTask task = task_on(grid, collective, ordered);
  LevelState state = task.start;
  std::vector<bool> scattered(static_cast<std::size_t>(grid.levels));
  std::int64_t segments = 1;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.last >= grid.levels)
      return refuse(program, instruction,
                    "names level " + std::to_string(instruction.last + 1) + " of " + std::to_string(grid.levels));
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

void lower_program(const Program& program, const Grid& grid, bool ordered, Builder& builder) {
  Lowering(program, grid, ordered, builder).run();
}

}  // namespace plait::plan
