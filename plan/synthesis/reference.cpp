#include "plan/synthesis/reference.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace plait::plan {

namespace {

using Words = std::vector<std::uint64_t>;

// The state matrices of all ranks; a row is a chunk's bit set of contributors.
class Matrices {
 public:
  explicit Matrices(int ranks) : ranks_(ranks), words_((ranks + 63) / 64) {
    bits_.resize(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(words_));
    for (int rank = 0; rank < ranks; ++rank)
      for (int chunk = 0; chunk < ranks; ++chunk)
        row(rank, chunk)[static_cast<std::size_t>(rank / 64)] = std::uint64_t{1} << (rank % 64);
  }

  int ranks() const { return ranks_; }
  const Words& bits() const { return bits_; }
  std::span<std::uint64_t> row(int rank, int chunk) { return {bits_.data() + offset(rank, chunk), row_words()}; }
  std::span<const std::uint64_t> row(int rank, int chunk) const {
    return {bits_.data() + offset(rank, chunk), row_words()};
  }
  bool holds(int rank, int chunk) const {
    return std::ranges::any_of(row(rank, chunk), [](std::uint64_t word) { return word != 0; });
  }
  void clear(int rank, int chunk) { std::ranges::fill(row(rank, chunk), 0); }

 private:
  std::size_t row_words() const { return static_cast<std::size_t>(words_); }
  std::size_t offset(int rank, int chunk) const {
    return (static_cast<std::size_t>(rank) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(chunk)) *
           row_words();
  }

  int ranks_, words_;
  Words bits_;
};

// Ranks base, base + step, ...; the first is the root.
struct Group {
  int base, step, size;
  int member(int index) const { return base + index * step; }
  int root() const { return base; }
};

enum class Rule {
  same_chunks,      // rank has the chunk, other has not
  disjoint,         // rank and other both have the contribution
  even_pieces,      // the chunks of rank cannot be cut into as many pieces
  holds_something,  // rank holds nothing
  disjoint_chunks,  // rank and other both hold the chunk
  root_has_all,     // rank has a contribution that the root, other, lacks
  somebody_learns,  // nobody differs from the root, rank
  complete,         // at the end rank lacks the contribution
};

struct Violation {
  Rule rule;
  int rank = 0, other = 0, chunk = 0, contributor = 0;
};

std::string text(const Violation& found) {
  const std::string rank = "rank " + std::to_string(found.rank), other = "rank " + std::to_string(found.other);
  const std::string chunk = "chunk " + std::to_string(found.chunk);
  const std::string contribution = "the contribution of rank " + std::to_string(found.contributor) + " in " + chunk;
  switch (found.rule) {
    case Rule::same_chunks:
      return rank + " holds " + chunk + " but " + other + " does not; expected the same chunks in all of a group";
    case Rule::disjoint:
      return rank + " and " + other + " both have " + contribution + "; expected it once";
    case Rule::even_pieces:
      return "the chunks of " + rank + " from " + chunk + " on do not divide into a piece for each of the group";
    case Rule::holds_something:
      return rank + " holds nothing, not even " + chunk + "; expected something from every rank";
    case Rule::disjoint_chunks:
      return rank + " and " + other + " both hold " + chunk;
    case Rule::root_has_all:
      return rank + " has " + contribution + ", which the root, " + other + ", lacks";
    case Rule::somebody_learns:
      return "no rank of the group of " + rank + " would get anything new in " + chunk + " or any other";
    case Rule::complete:
      return rank + " lacks " + contribution;
  }
  return {};
}

// The first column where the rows, combined by `combine`, have a bit.
template <class Combine>
std::optional<int> first_column(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b, Combine combine) {
  for (std::size_t word = 0; word < a.size(); ++word)
    if (const std::uint64_t bits = combine(a[word], b[word]))
      return static_cast<int>(word) * 64 + std::countr_zero(bits);
  return std::nullopt;
}
constexpr auto both = [](std::uint64_t a, std::uint64_t b) { return a & b; };
constexpr auto only_first = [](std::uint64_t a, std::uint64_t b) { return a & ~b; };

int first_chunk(const Matrices& state, int rank) {
  int chunk = 0;
  while (chunk < state.ranks() && !state.holds(rank, chunk)) ++chunk;
  return chunk;
}
bool is_empty(const Matrices& state, int rank) { return first_chunk(state, rank) == state.ranks(); }

std::vector<int> chunks_of(const Matrices& state, int rank) {
  std::vector<int> chunks;
  for (int chunk = 0; chunk < state.ranks(); ++chunk)
    if (state.holds(rank, chunk)) chunks.push_back(chunk);
  return chunks;
}

// The earliest member before `member` that it shares a contribution with.
std::optional<Violation> find_shared(const Matrices& state, const Group& group, int member, int chunk) {
  const int rank = group.member(member);
  for (int earlier = 0; earlier < member; ++earlier) {
    const int other = group.member(earlier);
    if (const auto column = first_column(state.row(rank, chunk), state.row(other, chunk), both))
      return Violation{Rule::disjoint, rank, other, chunk, *column};
  }
  return std::nullopt;
}

// AR, RS, RD.
std::optional<Violation> check_reduction(const Matrices& state, const Group& group) {
  const int root = group.root();
  for (int chunk = 0; chunk < state.ranks(); ++chunk) {
    const bool held = state.holds(root, chunk);
    for (int member = 1; member < group.size; ++member) {
      const int rank = group.member(member);
      if (state.holds(rank, chunk) != held)
        return Violation{Rule::same_chunks, held ? root : rank, held ? rank : root, chunk};
      if (const auto shared = find_shared(state, group, member, chunk)) return shared;
    }
  }
  return std::nullopt;
}

std::optional<Violation> check_pieces(const Matrices& state, const Group& group) {
  const std::vector<int> chunks = chunks_of(state, group.root());
  if (static_cast<int>(chunks.size()) % group.size == 0) return std::nullopt;
  return Violation{Rule::even_pieces, group.root(), 0, chunks.front()};
}

std::optional<Violation> check_all_gather(const Matrices& state, const Group& group) {
  for (int member = 0; member < group.size; ++member)
    if (is_empty(state, group.member(member))) return Violation{Rule::holds_something, group.member(member)};
  for (int chunk = 0; chunk < state.ranks(); ++chunk) {
    std::optional<int> holder;
    for (int member = 0; member < group.size; ++member) {
      if (!state.holds(group.member(member), chunk)) continue;
      if (holder) return Violation{Rule::disjoint_chunks, group.member(member), *holder, chunk};
      holder = group.member(member);
    }
  }
  return std::nullopt;
}

std::optional<Violation> check_broadcast(const Matrices& state, const Group& group) {
  const int root = group.root();
  bool differs = false;
  for (int member = 1; member < group.size; ++member)
    for (int chunk = 0; chunk < state.ranks(); ++chunk) {
      const auto mine = state.row(group.member(member), chunk), roots = state.row(root, chunk);
      if (const auto column = first_column(mine, roots, only_first))
        return Violation{Rule::root_has_all, group.member(member), root, chunk, *column};
      differs |= first_column(roots, mine, only_first).has_value();
    }
  if (!differs) return Violation{Rule::somebody_learns, root};
  return std::nullopt;
}

std::optional<Violation> check_group(const Matrices& state, Instruct what, const Group& group) {
  switch (what) {
    case Instruct::all_gather:
      return check_all_gather(state, group);
    case Instruct::broadcast:
      return check_broadcast(state, group);
    case Instruct::reduce_scatter:
      if (const auto violation = check_reduction(state, group)) return violation;
      return check_pieces(state, group);
    default:
      return check_reduction(state, group);
  }
}

void unite(Matrices& state, const Group& group) {
  for (int chunk = 0; chunk < state.ranks(); ++chunk) {
    const auto sum = state.row(group.root(), chunk);
    for (int member = 1; member < group.size; ++member)
      std::ranges::transform(sum, state.row(group.member(member), chunk), sum.begin(), std::bit_or<>());
  }
}

void copy_root(Matrices& state, const Group& group) {
  for (int member = 1; member < group.size; ++member)
    for (int chunk = 0; chunk < state.ranks(); ++chunk)
      std::ranges::copy(state.row(group.root(), chunk), state.row(group.member(member), chunk).begin());
}

void keep_pieces(Matrices& state, const Group& group) {
  const std::vector<int> chunks = chunks_of(state, group.root());
  const std::size_t piece = chunks.size() / static_cast<std::size_t>(group.size);
  for (std::size_t i = 0; i < chunks.size(); ++i)
    for (int member = 0; member < group.size; ++member)
      if (i / piece != static_cast<std::size_t>(member)) state.clear(group.member(member), chunks[i]);
}

void keep_root(Matrices& state, const Group& group) {
  for (int member = 1; member < group.size; ++member)
    for (int chunk = 0; chunk < state.ranks(); ++chunk) state.clear(group.member(member), chunk);
}

// Precondition: check_group() found nothing.
void execute(Matrices& state, Instruct what, const Group& group) {
  if (what != Instruct::broadcast) unite(state, group);
  if (what != Instruct::reduce) copy_root(state, group);
  if (what == Instruct::reduce) keep_root(state, group);
  if (what == Instruct::reduce_scatter) keep_pieces(state, group);
}

std::optional<Violation> execute(Matrices& state, Instruct what, std::span<const Group> groups) {
  for (const Group& group : groups)
    if (const auto violation = check_group(state, what, group)) return violation;
  for (const Group& group : groups) execute(state, what, group);
  return std::nullopt;
}

// The ranks that agree on all coordinates outside first..last.
std::vector<Group> groups_of(std::span<const int> cardinalities, int first, int last) {
  int inside = 1, below = 1, above = 1;
  for (int level = 0; level < static_cast<int>(cardinalities.size()); ++level)
    (level < first ? above : level > last ? below : inside) *= cardinalities[static_cast<std::size_t>(level)];
  std::vector<Group> groups;
  for (int outer = 0; outer < above; ++outer)
    for (int inner = 0; inner < below; ++inner) groups.push_back({outer * inside * below + inner, below, inside});
  return groups;
}

std::optional<Violation> find_missing(const Matrices& state) {
  Words everyone(state.row(0, 0).size());
  for (int rank = 0; rank < state.ranks(); ++rank)
    everyone[static_cast<std::size_t>(rank / 64)] |= std::uint64_t{1} << (rank % 64);
  for (int rank = 0; rank < state.ranks(); ++rank)
    for (int chunk = 0; chunk < state.ranks(); ++chunk)
      if (const auto column =
              first_column(std::span<const std::uint64_t>(everyone), state.row(rank, chunk), only_first))
        return Violation{Rule::complete, rank, 0, chunk, *column};
  return std::nullopt;
}

Status bad(const std::string& message) { return {Code::invalid, message}; }

Status check_cardinalities(std::span<const int> cardinalities) {
  std::int64_t ranks = 1;
  for (const int cardinality : cardinalities) {
    if (cardinality < 1) return bad("a level of " + std::to_string(cardinality) + ", expected at least 1");
    ranks *= cardinality;
    if (ranks > most_reference_ranks)
      return {Code::unsupported, "more than " + std::to_string(most_reference_ranks) + " ranks in state matrices"};
  }
  return {};
}

Status check_form(const Instruction& instruction, std::span<const int> cardinalities) {
  const int levels = static_cast<int>(cardinalities.size());
  if (static_cast<int>(instruction.what) >= p2_instructs) return bad("expected AR, RS, AG, RD or BC");
  if (instruction.first < 0 || instruction.first > instruction.last || instruction.last >= levels)
    return bad("expected levels between 1 and " + std::to_string(levels));
  const auto range = cardinalities.subspan(static_cast<std::size_t>(instruction.first),
                                           static_cast<std::size_t>(instruction.last - instruction.first + 1));
  if (std::ranges::all_of(range, [](int cardinality) { return cardinality == 1; })) return bad("groups of one rank");
  return {};
}

struct GroupSet {
  Instruct what;
  std::vector<Group> groups;
};

void add_all_instructs(std::vector<GroupSet>& to, const std::vector<Group>& groups) {
  for (int what = 0; what < p2_instructs; ++what) to.push_back({static_cast<Instruct>(what), groups});
}

// Precondition: no cardinality is 1, so that each range is a group set of its own.
std::vector<GroupSet> instructions_over(std::span<const int> cardinalities, bool master) {
  const int levels = static_cast<int>(cardinalities.size());
  std::vector<GroupSet> instructions;
  for (int first = 0; first < levels; ++first)
    for (int last = first; last < levels; ++last) {
      std::vector<Group> groups = groups_of(cardinalities, first, last);
      add_all_instructs(instructions, groups);
      if (!master || last == levels - 1) continue;
      const int under_each = groups.front().step * groups.front().size;
      std::erase_if(groups, [&](const Group& group) { return group.base % under_each != 0; });
      add_all_instructs(instructions, groups);
    }
  return instructions;
}

struct Hash {
  std::size_t operator()(const Words& words) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : words) hash = (std::rotl(hash, 7) ^ word) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(hash ^ hash >> 32);
  }
};

// The states met so far, each expanded once.
class StateGraph {
 public:
  StateGraph(std::span<const int> cardinalities, int ranks, bool master)
      : instructions_(instructions_over(cardinalities, master)) {
    index_of(Matrices(ranks));
  }
  std::size_t size() const { return nodes_.size(); }
  bool is_goal(std::size_t node) const { return nodes_[node].goal; }
  const std::vector<std::size_t>& successors(std::size_t node) {
    if (!nodes_[node].expanded) expand(node);
    return nodes_[node].successors;
  }

 private:
  struct Node {
    Matrices state;
    bool goal = false, expanded = false;
    std::vector<std::size_t> successors = {};  // one for each valid instruction
  };

  std::size_t index_of(Matrices state) {
    const auto [found, added] = index_.try_emplace(state.bits(), nodes_.size());
    if (!added) return found->second;
    const bool goal = !find_missing(state);
    nodes_.push_back({std::move(state), goal});
    return found->second;
  }

  void expand(std::size_t node) {
    nodes_[node].expanded = true;
    for (const GroupSet& instruction : instructions_) {
      Matrices state = nodes_[node].state;
      if (execute(state, instruction.what, instruction.groups)) continue;
      const std::size_t next = index_of(std::move(state));
      nodes_[node].successors.push_back(next);
    }
  }

  std::vector<GroupSet> instructions_;
  std::vector<Node> nodes_;
  std::unordered_map<Words, std::size_t, Hash> index_;
};

}  // namespace

Status run_reference(const Program& program, std::span<const int> cardinalities) {
  if (Status status = check_cardinalities(cardinalities); !status.ok()) return status;
  int ranks = 1;
  for (const int cardinality : cardinalities) ranks *= cardinality;
  Matrices state(ranks);
  for (const Instruction& instruction : program.instructions) {
    const std::string where = text_without_algorithms({{instruction}}) + ": ";
    if (const Status status = check_form(instruction, cardinalities); !status.ok())
      return bad(where + status.message());
    const auto groups = groups_of(cardinalities, instruction.first, instruction.last);
    if (const auto violation = execute(state, instruction.what, groups)) return bad(where + text(*violation));
  }
  if (const auto missing = find_missing(state)) return bad("after the last instruction " + text(*missing));
  return {};
}

std::vector<std::uint64_t> count_reference(std::span<const int> cardinalities, int most_instructions, bool master) {
  std::vector<int> levels;
  int ranks = 1;
  for (const int cardinality : cardinalities) {
    if (cardinality > 1) levels.push_back(cardinality);
    ranks *= cardinality;
  }
  StateGraph graph(levels, ranks, master);
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> ways = {1};  // to reach each state with so many instructions
  for (int size = 0; size <= most_instructions; ++size) {
    std::uint64_t complete = 0;
    std::vector<std::uint64_t> next(graph.size());
    for (std::size_t node = 0; node < ways.size(); ++node) {
      if (ways[node] == 0) continue;
      if (graph.is_goal(node)) complete += ways[node];
      if (size == most_instructions) continue;
      for (const std::size_t to : graph.successors(node)) {
        next.resize(std::max(next.size(), graph.size()));
        next[to] += ways[node];
      }
    }
    counts.push_back(complete);
    ways = std::move(next);
  }
  return counts;
}

}  // namespace plait::plan
