#include "plan/motif/lowering.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "plan/algorithm/registry.h"
#include "plan/lower/group_emission.h"

namespace plait::plan::motif {
namespace {

constexpr std::int64_t most_cells = std::int64_t{1} << 22;

bool is_vector(const Rewriting& rewriting) { return !has_pieces(rewriting.whole.what); }

// Segments of each unit of a vector: so many that algorithms can cut every motif's payload as they like to.
int segments_of_unit(const Rewriting& rewriting, std::span<const Way> ways) {
  int segments = 1;
  std::size_t number = 0;
  const std::vector<std::size_t> dealt = dealt_ways(rewriting.term, std::max<std::size_t>(ways.size(), 1));
  for (const Motif* motif : motifs_of(rewriting.term)) {
    const std::size_t way_number = dealt[number++];
    const Way way = ways.empty() ? Way{} : ways[way_number];
    const Algorithm* algorithm = algorithm_of(*motif, way);
    if (motif->what != Collective::allreduce || algorithm == nullptr || algorithm->pieces == nullptr) continue;
    const int pieces = algorithm->pieces(motif->members());
    segments = std::lcm(segments, pieces / std::gcd(pieces, motif->payload.count));
  }
  return segments;
}

class Lowering {
 public:
  Lowering(const Rewriting& rewriting, std::span<const Way> ways, const Hierarchy& hierarchy, Builder& builder,
           int segments, Running running)
      : rewriting_(rewriting),
        ways_(ways),
        hierarchy_(hierarchy),
        builder_(builder),
        segments_of_unit_(segments),
        running_(running),
        dealt_(dealt_ways(rewriting.term, std::max<std::size_t>(ways.size(), 1))) {}

  void run() { emit(rewriting_.term, -1); }

 private:
  int rank_of(const Motif& motif, int member) const {
    return hierarchy_.rank_at(motif.group[static_cast<std::size_t>(member % motif.members())]);
  }

  // `series`: of rounds, of the splined composition around it; -1: there is none.
  void emit(const Term& term, int series) {
    const bool in_parts = running_ == Running::part_by_part;
    if (term.kind == Term::Kind::motif || (in_parts && runs_at_once(term))) return emit_part(term);
    const bool takes_turns = !in_parts && is_splined(term);
    if (takes_turns && series < 0) series = std::exchange(next_series_, next_series_ + most_rails + 1);
    for (const Term& part : term.parts) {
      if (takes_turns && !is_splined(part)) builder_.begin_round(series + 1 + way_of(number_).rail);
      emit(part, takes_turns ? series : -1);
      if (takes_turns) builder_.end_rounds();
    }
  }

  void emit_part(const Term& term) {
    if (running_ == Running::part_by_part) builder_.begin_part(next_part_++);
    for (const Motif* motif : motifs_of(term)) emit(*motif);
  }

  Way way_of(std::size_t motif) const { return ways_.empty() ? Way{} : ways_[dealt_[motif]]; }

  void emit(const Motif& motif) {
    const Way way = way_of(number_++);
    if (way.rail != any_rail)
      builder_.bind_chunks(std::span(&way.rail, 1));
    else
      builder_.bind_chunks({});
    if (!is_vector(rewriting_)) builder_.work_on_chunks(motif.payload.first, motif.payload.count);
    if (const Algorithm* algorithm = algorithm_of(motif, way); algorithm != nullptr)
      emit_by(*algorithm, motif);
    else
      emit_directly(motif);
  }

  // ---- Whole patterns ----

  // The root first.
  std::vector<int> members_of(const Motif& motif) const {
    std::vector<int> members;
    for (int i = 0; i < motif.members(); ++i) members.push_back(rank_of(motif, motif.root + i));
    return members;
  }

  // Of a motif in which nothing is told apart.
  Segments segments_of(const Range& units) const {
    return {{units.first * segments_of_unit_, units.count * segments_of_unit_}};
  }

  // Of one that is a vector's piece, or that has a block of its own.
  Segments segments_of_piece(const Motif& motif, int member) const {
    const int owner = member % motif.members();
    if (motif.pieces == Pieces::of_blocks) return {{rank_of(motif, owner), 1}};
    return segments_of({motif.base + owner * motif.stride + motif.payload.first, motif.payload.count});
  }

  void emit_by(const Algorithm& algorithm, const Motif& motif) {
    const std::vector<int> members = members_of(motif);
    const Instruct what = instruct_of(motif.what);
    std::vector<int> outer;
    for (const int member : members) outer.push_back(hierarchy_.node_of(member));
    const int pieces = pieces_of(algorithm, what, motif.members());
    const auto piece = [&](int number) {
      if (has_pieces(motif.what)) return segments_of_piece(motif, motif.root + number);
      const Segments all = segments_of(motif.payload);
      const int segments = count_of(all);
      return slice(all, number * segments / pieces, (number + 1) * segments / pieces);
    };
    Segments all;
    for (int number = 0; number < pieces; ++number) append(all, piece(number));
    plan::emit(algorithm, what, {members, piece, outer, all}, builder_);
  }

  // ---- Parts of a pattern ----

  // What member `giver` has for `taker`, as blocks of the builder's.
  BlockRuns blocks_of_transfer(const Motif& motif, int giver, int taker) const {
    Segments segments;
    if (motif.what == Collective::alltoall)
      segments = {{rank_of(motif, giver) * builder_.semantics().ranks() + rank_of(motif, taker), 1}};
    else if (!has_pieces(motif.what))
      segments = segments_of(motif.payload);
    else
      segments = segments_of_piece(
          motif, motif.what == Collective::allgather || motif.what == Collective::gather ? giver : taker);
    BlockRuns blocks;
    for (const int chunk : builder_.chunks())
      for (const BlockRun& run : blocks_of(segments, chunk)) blocks.push_back(run);
    return blocks;
  }

  void transfer(const Motif& motif, int giver, int taker) {
    const BlockRuns blocks = blocks_of_transfer(motif, giver, taker);
    const int from = rank_of(motif, giver), to = rank_of(motif, taker);
    if (motif.what == Collective::reduce || motif.what == Collective::reduce_scatter_block)
      builder_.combine(from, to, blocks, from < to);
    else
      builder_.move(from, to, blocks);
  }

  void emit_directly(const Motif& motif) {
    const bool to_root = motif.what == Collective::reduce || motif.what == Collective::gather;
    for (int d = std::max(1, motif.distances.first); d < motif.distances.end(); ++d) {
      if (rooted_motif(motif.what)) {
        transfer(motif, to_root ? motif.root + d : motif.root, to_root ? motif.root : motif.root + d);
        continue;
      }
      for (int giver = 0; giver < motif.members(); ++giver) transfer(motif, giver, giver + d);
    }
  }

  const Rewriting& rewriting_;
  std::span<const Way> ways_;
  const Hierarchy& hierarchy_;
  Builder& builder_;
  int segments_of_unit_;
  Running running_;
  std::vector<std::size_t> dealt_;  // by motif
  std::size_t number_ = 0;          // of the next motif
  int next_series_ = 0;             // of rounds
  int next_part_ = 0;
};

void deal(const Term& term, std::size_t ways, std::size_t& next, std::vector<std::size_t>& dealt) {
  if (term.kind == Term::Kind::motif) {
    dealt.push_back(next++ % ways);
    return;
  }
  for (std::size_t part = 0; part < term.parts.size(); ++part)
    if (term.kind == Term::Kind::parallel)
      dealt.insert(dealt.end(), motifs_of(term.parts[part]).size(), part % ways);
    else
      deal(term.parts[part], ways, next, dealt);
}

}  // namespace

Instruct instruct_of(Collective what) {
  switch (what) {
    case Collective::allreduce:
      return Instruct::all_reduce;
    case Collective::reduce:
      return Instruct::reduce;
    case Collective::bcast:
      return Instruct::broadcast;
    case Collective::allgather:
      return Instruct::all_gather;
    case Collective::reduce_scatter_block:
      return Instruct::reduce_scatter;
    case Collective::gather:
      return Instruct::gather;
    default:
      return Instruct::scatter;
  }
}

std::vector<std::size_t> dealt_ways(const Term& term, std::size_t ways) {
  std::vector<std::size_t> dealt;
  std::size_t next = 0;
  deal(term, ways, next, dealt);
  return dealt;
}

bool is_splined(const Term& term) {
  if (term.kind != Term::Kind::parallel) return false;
  const Motif &first = *motifs_of(term.parts[0]).front(), &second = *motifs_of(term.parts[1]).front();
  return first.group == second.group && first.distances != second.distances;
}

const Algorithm* algorithm_of(const Motif& motif, const Way& way) {
  if (motif.what == Collective::alltoall || !motif.whole_pattern()) return nullptr;
  const Instruct what = instruct_of(motif.what);
  const auto usable = [&](const Algorithm* algorithm) {
    return algorithm != nullptr && !algorithm->needs_whole_node && algorithm->fits(what, motif.members());
  };
  if (usable(way.algorithm)) return way.algorithm;
  const Algorithm* usual = default_algorithm(what);
  return usable(usual) ? usual : nullptr;
}

Result<LoweredPlan> lower(const Rewriting& rewriting, std::span<const Way> ways, Collective collective,
                          const Hierarchy& hierarchy, const Routes& routes, Running running) {
  const Motif& whole = rewriting.whole;
  const int ranks = whole.members();
  if (ranks != hierarchy.ranks())
    return {Code::invalid,
            text(whole) + ": is for " + std::to_string(ranks) + " ranks, not for " + std::to_string(hierarchy.ranks())};
  const int each = is_vector(rewriting) ? segments_of_unit(rewriting, ways) : 1;
  const std::int64_t blocks = std::int64_t{each} * rewriting.units * (is_vector(rewriting) ? 1 : ranks) *
                              (whole.what == Collective::alltoall ? ranks : 1);
  if (blocks * ranks > most_cells)
    return {Code::unsupported, text(rewriting.whole) + ": its rewriting cuts the data of " + std::to_string(ranks) +
                                   " ranks into too many blocks"};
  const Semantics semantics(collective, ranks, hierarchy.rank_at(whole.root), each * rewriting.units,
                            is_vector(rewriting) ? 1 : rewriting.units);
  Builder builder(semantics, routes);
  Lowering(rewriting, ways, hierarchy, builder, each, running).run();
  return builder.finish();
}

}  // namespace plait::plan::motif
