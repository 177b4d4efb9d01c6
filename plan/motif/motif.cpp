#include "plan/motif/motif.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace plait::plan::motif {
namespace {

struct Kind {
  Collective what;
  std::string_view letters;  // as in P²'s programs, and AA
  Pieces pieces;
  bool rooted;
};
constexpr std::array kinds = {
    Kind{Collective::allreduce, "AR", Pieces::of_vector, false},
    Kind{Collective::reduce, "RD", Pieces::of_vector, true},
    Kind{Collective::bcast, "BC", Pieces::of_vector, true},
    Kind{Collective::allgather, "AG", Pieces::of_blocks, false},
    Kind{Collective::reduce_scatter_block, "RS", Pieces::of_blocks, false},
    Kind{Collective::gather, "GA", Pieces::of_blocks, true},
    Kind{Collective::scatter, "SC", Pieces::of_blocks, true},
    Kind{Collective::alltoall, "AA", Pieces::of_blocks, false},
};

const Kind* kind_of(Collective what) {
  const auto found = std::ranges::find(kinds, what, &Kind::what);
  return found != kinds.end() ? &*found : nullptr;
}

bool consecutive(const std::vector<int>& values) {
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] != values[i - 1] + 1) return false;
  return true;
}

std::string text_of_group(const std::vector<int>& group) {
  if (group.size() > 2 && consecutive(group)) return std::to_string(group.front()) + "-" + std::to_string(group.back());
  std::string text;
  for (const int rank : group) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

std::string text_of_range(const Range& range) {
  return std::to_string(range.first) + ":" + std::to_string(range.end());
}

}  // namespace

bool has_pieces(Collective what) { return what >= Collective::allgather; }

bool rooted_motif(Collective what) {
  const Kind* kind = kind_of(what);
  return kind != nullptr && kind->rooted;
}

bool is_motif(Collective what) { return kind_of(what) != nullptr; }

Result<Rewriting> whole_collective(Collective collective, int ranks, int root) {
  const Kind* kind = kind_of(collective);
  if (kind == nullptr)
    return {Code::invalid, std::string(name(collective)) +
                               " is no motif: expected allreduce, reduce, bcast, allgather, reduce_scatter_block, "
                               "gather, scatter or alltoall"};
  if (ranks < 2) return {Code::invalid, "a motif of " + std::to_string(ranks) + " ranks: expected two or more"};
  if (root < 0 || root >= ranks)
    return {Code::invalid, "root " + std::to_string(root) + ": expected a rank from 0 to " + std::to_string(ranks - 1)};
  Motif motif{.what = collective, .group = std::vector<int>(static_cast<std::size_t>(ranks))};
  std::iota(motif.group.begin(), motif.group.end(), 0);
  motif.root = kind->rooted ? root : 0;
  motif.payload = {0, 1};
  motif.pieces = kind->pieces;
  motif.distances = {0, ranks};
  return Rewriting{.whole = motif, .term = {.kind = Term::Kind::motif, .motif = motif, .parts = {}}, .units = 1};
}

std::vector<const Motif*> motifs_of(const Term& term) {
  if (term.kind == Term::Kind::motif) return {&term.motif};
  std::vector<const Motif*> all;
  for (const Term& part : term.parts)
    for (const Motif* motif : motifs_of(part)) all.push_back(motif);
  return all;
}

int depth_of(const Term& term) {
  int deepest = 0;
  for (const Term& part : term.parts) deepest = std::max(deepest, 1 + depth_of(part));
  return deepest;
}

bool runs_at_once(const Term& term) {
  if (term.kind != Term::Kind::parallel) return false;
  std::set<int> seen;
  for (const Term& part : term.parts) {
    if (part.kind != Term::Kind::motif) return false;
    for (const int rank : part.motif.group)
      if (!seen.insert(rank).second) return false;
  }
  return true;
}

std::string text(const Motif& motif) {
  const Kind* kind = kind_of(motif.what);
  const bool of_vector = has_pieces(motif.what) && motif.pieces == Pieces::of_vector;
  std::string units = text_of_range(motif.payload);
  if (of_vector) {
    const std::string vector = text_of_range({motif.base, motif.stride * motif.members()});
    units = motif.payload == Range{0, motif.stride} ? vector : vector + "[" + units + "]";
  }
  std::string text = std::string(kind != nullptr ? kind->letters : name(motif.what)) + "(" + units + ", " +
                     text_of_group(motif.group) + ")";
  if (rooted_motif(motif.what)) text += "^" + std::to_string(motif.group[static_cast<std::size_t>(motif.root)]);
  if (!motif.whole_pattern()) text += "+" + text_of_range(motif.distances);
  return text;
}

std::string text(const Term& term) {
  if (term.kind == Term::Kind::motif) return text(term.motif);
  std::string all;
  for (const Term& part : term.parts) {
    const bool nested = part.kind != Term::Kind::motif;
    all += (all.empty() ? "" : term.kind == Term::Kind::parallel ? " ∥ " : " → ");
    all += nested ? "(" + text(part) + ")" : text(part);
  }
  return all;
}

}  // namespace plait::plan::motif
