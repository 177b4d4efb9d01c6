#include "plan/lowering.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace plait {

namespace {

int group_size(const Grid& grid, const Instruction& instruction) {
  int size = 1;
  for (int level = instruction.first; level <= instruction.last; ++level)
    size *= grid.cardinality[static_cast<std::size_t>(level)];
  return size;
}

bool scatters(const Instruction& instruction) {
  return scatters(instruction.what, instruction.algorithm);
}

// Runs the instructions in order, with the segments that each rank holds at each point.
class Lowering {
 public:
  Lowering(const Program& program, const Grid& grid, Builder& builder)
      : program_(program), grid_(grid), builder_(builder), held_(static_cast<std::size_t>(grid.ranks())) {}

  Status run() {
    for (int rank = 0; rank < grid_.ranks(); ++rank) held_[static_cast<std::size_t>(rank)] = initially(rank);
    for (const Instruction& instruction : program_.instructions) {
      for (const std::vector<int>& group : groups(instruction))
        if (group.size() > 1)
          if (Status status = run(instruction, group); !status.ok()) return status;
    }
    return {};
  }

 private:
  Segments initially(int rank) const {
    const Semantics& semantics = builder_.semantics();
    Segments all(static_cast<std::size_t>(semantics.segments()));
    std::iota(all.begin(), all.end(), 0);
    if (reduces(semantics.collective())) return all;
    if (semantics.collective() == Collective::bcast) return rank == semantics.root() ? all : Segments{};
    return {rank};
  }

  Segments& held(int rank) { return held_[static_cast<std::size_t>(rank)]; }

  // Ranks that agree on all coordinates outside the instruction's levels, each group in order of its coordinates.
  std::vector<std::vector<int>> groups(const Instruction& instruction) const {
    std::map<std::vector<int>, std::vector<int>> by_outside;
    for (const int rank : grid_.order) {
      std::vector<int> outside = grid_.coordinate[static_cast<std::size_t>(rank)];
      std::fill(outside.begin() + instruction.first, outside.begin() + instruction.last + 1, 0);
      by_outside[outside].push_back(rank);
    }
    std::vector<std::vector<int>> result;
    for (auto& [outside, members] : by_outside) result.push_back(std::move(members));
    return result;
  }

  Status run(const Instruction& instruction, const std::vector<int>& group) {
    switch (instruction.what) {
      case Instruct::broadcast:
        return broadcast(instruction, group);
      case Instruct::all_gather:
        return all_gather(instruction, group);
      default:
        return reduction(instruction, group);
    }
  }

  Status refuse(const Instruction& instruction, const std::string& why) const {
    return {Code::unsupported, "program " + text(program_) + ": " + text({{instruction}}) + ": " + why};
  }

  Status reduction(const Instruction& instruction, const std::vector<int>& group) {
    const Segments segments = held(group.front());
    for (const int member : group)
      if (held(member) != segments) return refuse(instruction, "members hold different rows");
    if (segments.empty()) return {};
    if (instruction.what == Instruct::reduce) {
      tree_reduce(builder_, group, segments, tree_of(instruction.algorithm));
      for (std::size_t i = 1; i < group.size(); ++i) held(group[i]).clear();
      return {};
    }
    if (instruction.what == Instruct::all_reduce && instruction.algorithm == Algorithm::recursive_doubling) {
      recursive_doubling_allreduce(builder_, group, segments);
      return {};
    }
    return scattered_reduction(instruction, group, segments);
  }

  Status scattered_reduction(const Instruction& instruction, const std::vector<int>& group, const Segments& segments) {
    const bool all = instruction.what == Instruct::all_reduce;
    const std::vector<Segments> pieces = all ? cut(segments, group.size()) : pieces_of(instruction, group, segments);
    if (pieces.empty()) return refuse(instruction, "the rows cannot be cut into a piece for each member");
    if (instruction.algorithm == Algorithm::ring) ring_reduce_scatter(builder_, group, pieces);
    else direct_reduce_scatter(builder_, group, pieces);
    if (all) {
      if (instruction.algorithm == Algorithm::ring) ring_allgather(builder_, group, pieces);
      else direct_allgather(builder_, group, pieces);
      return {};
    }
    for (std::size_t i = 0; i < group.size(); ++i) held(group[i]) = pieces[i];
    return {};
  }

  // The piece of each member in a reduce-scatter. Where the collective itself says who ends with what, a member keeps
  // the segments whose owners share its coordinates on these levels.
  std::vector<Segments> pieces_of(const Instruction& instruction, const std::vector<int>& group,
                                  const Segments& segments) const {
    const Collective collective = builder_.semantics().collective();
    if (collective != Collective::reduce_scatter && collective != Collective::reduce_scatter_block)
      return cut(segments, group.size());
    std::vector<Segments> pieces(group.size());
    for (const int segment : segments) {
      const auto owner = std::find_if(group.begin(), group.end(),
                                      [&](int member) { return agree(member, segment, instruction); });
      if (owner == group.end()) return {};
      pieces[static_cast<std::size_t>(owner - group.begin())].push_back(segment);
    }
    return pieces;
  }

  bool agree(int one, int other, const Instruction& instruction) const {
    const auto& a = grid_.coordinate[static_cast<std::size_t>(one)];
    const auto& b = grid_.coordinate[static_cast<std::size_t>(other)];
    return std::equal(a.begin() + instruction.first, a.begin() + instruction.last + 1, b.begin() + instruction.first);
  }

  static std::vector<Segments> cut(const Segments& segments, std::size_t parts) {
    if (segments.size() % parts != 0) return {};
    const auto length = static_cast<std::ptrdiff_t>(segments.size() / parts);
    std::vector<Segments> pieces;
    for (auto begin = segments.begin(); begin != segments.end(); begin += length)
      pieces.emplace_back(begin, begin + length);
    return pieces;
  }

  Status all_gather(const Instruction& instruction, const std::vector<int>& group) {
    std::vector<Segments> pieces;
    Segments all;
    for (const int member : group) {
      if (held(member).empty()) return refuse(instruction, "a member holds nothing");
      pieces.push_back(held(member));
      all.insert(all.end(), held(member).begin(), held(member).end());
    }
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end()) return refuse(instruction, "members hold the same row");
    if (instruction.algorithm == Algorithm::ring) ring_allgather(builder_, group, pieces);
    else if (instruction.algorithm == Algorithm::direct) direct_allgather(builder_, group, pieces);
    else dissemination_allgather(builder_, group, pieces);
    for (const int member : group) held(member) = all;
    return {};
  }

  Status broadcast(const Instruction& instruction, const std::vector<int>& group) {
    const Segments segments = held(group.front());
    if (segments.empty()) return {};
    for (const int member : group)
      if (member != group.front() && !held(member).empty()) return refuse(instruction, "a member holds data already");
    tree_broadcast(builder_, group, segments, tree_of(instruction.algorithm));
    for (const int member : group) held(member) = segments;
    return {};
  }

  static Tree tree_of(Algorithm algorithm) {
    if (algorithm == Algorithm::chain) return Tree::chain;
    return algorithm == Algorithm::flat ? Tree::flat : Tree::binomial;
  }

  const Program& program_;
  const Grid& grid_;
  Builder& builder_;
  std::vector<Segments> held_;  // by rank, ascending; empty: takes no part
};

}  // namespace

Result<int> segments_needed(const Program& program, const Grid& grid) {
  int segments = 1;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.last >= grid.levels)
      return Status(Code::invalid, "program " + text(program) + ": names level " + std::to_string(instruction.last + 1) +
                                       " of " + std::to_string(grid.levels));
    if (scatters(instruction)) segments *= group_size(grid, instruction);
  }
  return segments;
}

Status lower_program(const Program& program, const Grid& grid, Builder& builder) {
  if (!grid.uniform && grid.levels > 1)
    for (const Instruction& instruction : program.instructions)
      if (instruction.what == Instruct::reduce_scatter || instruction.what == Instruct::all_gather)
        return {Code::unsupported, "program " + text(program) + ": RS and AG need a uniform hierarchy"};
  return Lowering(program, grid, builder).run();
}

}  // namespace plait
