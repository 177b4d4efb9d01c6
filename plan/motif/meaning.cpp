#include "plan/motif/meaning.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plait::plan::motif {
namespace {

constexpr std::size_t most_ranks = 256;
constexpr std::size_t most_values = std::size_t{1} << 22;

using Contributions = std::bitset<most_ranks>;

// All values: of each rank, of each unit of each block. Vectors are one block.
class Values {
 public:
  explicit Values(const Rewriting& rewriting)
      : ranks_(static_cast<std::size_t>(rewriting.whole.members())),
        units_(static_cast<std::size_t>(rewriting.units)),
        blocks_(blocks_of(rewriting.whole)),
        values_(ranks_ * blocks_ * units_) {}

  static std::size_t blocks_of(const Motif& whole) {
    const auto ranks = static_cast<std::size_t>(whole.members());
    if (!has_pieces(whole.what)) return 1;
    return whole.what == Collective::alltoall ? ranks * ranks : ranks;
  }

  std::size_t ranks() const { return ranks_; }
  std::size_t units() const { return units_; }
  std::size_t blocks() const { return blocks_; }
  std::size_t index(int rank, std::size_t block, int unit) const {
    return (static_cast<std::size_t>(rank) * blocks_ + block) * units_ + static_cast<std::size_t>(unit);
  }
  Contributions& at(std::size_t index) { return values_[index]; }
  std::string describe(std::size_t index) const {
    return "rank " + std::to_string(index / units_ / blocks_) + ", block " + std::to_string(index / units_ % blocks_) +
           ", unit " + std::to_string(index % units_);
  }

 private:
  std::size_t ranks_, units_, blocks_;
  std::vector<Contributions> values_;
};

// What a part of a composition has touched.
struct Touched {
  std::vector<std::size_t> read, written;
  void add(const Touched& other) {
    read.insert(read.end(), other.read.begin(), other.read.end());
    written.insert(written.end(), other.written.begin(), other.written.end());
  }
};

// One motif at work.
class Move {
 public:
  Move(const Motif& motif, Values& values, Touched& touched) : motif_(motif), values_(values), touched_(touched) {}

  Status run() {
    if (Status sound = check(); !sound.ok()) return sound;
    switch (motif_.what) {
      case Collective::allreduce:
        return all_reduce();
      case Collective::reduce:
      case Collective::gather:
        return to_root();
      case Collective::bcast:
      case Collective::scatter:
        return from_root();
      default:
        return between_all();
    }
  }

 private:
  static bool within(const Range& range, int end) {
    return range.first >= 0 && range.count >= 0 && range.first <= end && range.count <= end - range.first;
  }

  // Whether all that it names is there.
  Status check() const {
    const auto ranks = static_cast<int>(values_.ranks()), units = static_cast<int>(values_.units());
    std::vector<bool> seen(values_.ranks());
    bool sound = !motif_.group.empty() && motif_.root >= 0 && motif_.root < motif_.members() &&
                 within(motif_.distances, motif_.members());
    for (const int rank : motif_.group) {
      sound = sound && rank >= 0 && rank < ranks && !seen[static_cast<std::size_t>(rank)];
      if (sound) seen[static_cast<std::size_t>(rank)] = true;
    }
    if (has_pieces(motif_.what) && motif_.pieces == Pieces::of_vector)
      sound = sound && motif_.stride >= 0 && within(motif_.payload, motif_.stride) &&
              within({motif_.base, motif_.stride * motif_.members()}, units) && values_.blocks() == 1;
    else
      sound = sound && within(motif_.payload, units);
    sound = sound && (has_pieces(motif_.what) || values_.blocks() == 1);
    return sound ? Status() : Status(Code::invalid, text(motif_) + ": names what is not there");
  }

  int member(int index) const { return motif_.group[static_cast<std::size_t>(index % motif_.members())]; }

  // Calls `take(unit)` for what member `owner`, of an all-to-all the pair (giver, owner), has for its own; for the
  // vector's units where nothing is told apart.
  template <class Take>
  Status each(int giver, int owner, Take&& take) {
    std::size_t block = 0;
    int base = 0;
    if (has_pieces(motif_.what) && motif_.pieces == Pieces::of_vector) base = motif_.base + owner * motif_.stride;
    if (has_pieces(motif_.what) && motif_.pieces == Pieces::of_blocks) block = static_cast<std::size_t>(member(owner));
    if (motif_.what == Collective::alltoall) block += static_cast<std::size_t>(member(giver)) * values_.ranks();
    for (int unit = motif_.payload.first; unit < motif_.payload.end(); ++unit)
      if (Status status = take(block, base + unit); !status.ok()) return status;
    return {};
  }

  Status complain(std::size_t index, const char* what) const {
    return {Code::invalid, text(motif_) + ": " + values_.describe(index) + ": " + what};
  }

  Status copy(int from, int to, std::size_t block, int unit) {
    const std::size_t source = values_.index(from, block, unit), target = values_.index(to, block, unit);
    if (values_.at(source).none()) return complain(source, "has nothing to give");
    if ((values_.at(target) & ~values_.at(source)).any()) return complain(target, "loses what was combined there");
    values_.at(target) = values_.at(source);
    touched_.read.push_back(source);
    touched_.written.push_back(target);
    return {};
  }

  // What was given is not there any more: it must not be combined again.
  Status combine(int from, int to, std::size_t block, int unit) {
    const std::size_t source = values_.index(from, block, unit), target = values_.index(to, block, unit);
    if (values_.at(source).none()) return complain(source, "has nothing to give");
    if ((values_.at(target) & values_.at(source)).any()) return complain(target, "would have a contribution twice");
    values_.at(target) |= std::exchange(values_.at(source), {});
    touched_.written.insert(touched_.written.end(), {source, target});
    return {};
  }

  Status all_reduce() {
    for (int i = 1; i < motif_.members(); ++i)
      if (Status status =
              each(i, 0, [&](std::size_t block, int unit) { return combine(member(i), member(0), block, unit); });
          !status.ok())
        return status;
    for (int i = 1; i < motif_.members(); ++i)
      if (Status status =
              each(0, i, [&](std::size_t block, int unit) { return copy(member(0), member(i), block, unit); });
          !status.ok())
        return status;
    return {};
  }

  Status to_root() {
    for (int d = std::max(1, motif_.distances.first); d < motif_.distances.end(); ++d) {
      const int giver = motif_.root + d;
      const Status status = each(giver, giver % motif_.members(), [&](std::size_t block, int unit) {
        const int from = member(giver), to = member(motif_.root);
        return motif_.what == Collective::reduce ? combine(from, to, block, unit) : copy(from, to, block, unit);
      });
      if (!status.ok()) return status;
    }
    return {};
  }

  Status from_root() {
    for (int d = std::max(1, motif_.distances.first); d < motif_.distances.end(); ++d) {
      const int taker = (motif_.root + d) % motif_.members();
      const Status status = each(motif_.root, taker, [&](std::size_t block, int unit) {
        return copy(member(motif_.root), member(taker), block, unit);
      });
      if (!status.ok()) return status;
    }
    return {};
  }

  // A reduce-scatter's pieces are the takers', an all-gather's the givers'.
  Status between_all() {
    for (int d = std::max(1, motif_.distances.first); d < motif_.distances.end(); ++d)
      for (int giver = 0; giver < motif_.members(); ++giver) {
        const int taker = (giver + d) % motif_.members();
        const int owner = motif_.what == Collective::allgather ? giver : taker;
        const Status status = each(giver, owner, [&](std::size_t block, int unit) {
          const bool combines = motif_.what == Collective::reduce_scatter_block;
          return combines ? combine(member(giver), member(taker), block, unit)
                          : copy(member(giver), member(taker), block, unit);
        });
        if (!status.ok()) return status;
      }
    return {};
  }

  const Motif& motif_;
  Values& values_;
  Touched& touched_;
};

class Proof {
 public:
  explicit Proof(const Rewriting& rewriting) : rewriting_(rewriting), values_(rewriting) {}

  Status run() {
    begin();
    Touched touched;
    if (Status status = perform(rewriting_.term, touched); !status.ok()) return status;
    return check_results();
  }

 private:
  int ranks() const { return static_cast<int>(values_.ranks()); }
  const Motif& whole() const { return rewriting_.whole; }

  // Whether the rank has a value of its own of the block before.
  bool gives(int rank, int block) const {
    switch (whole().what) {
      case Collective::bcast:
      case Collective::scatter:
        return rank == whole().root;
      case Collective::allgather:
      case Collective::gather:
        return rank == block;
      case Collective::alltoall:
        return rank == block / ranks();
      default:
        return true;
    }
  }

  // Whether the rank must have the block's result afterwards.
  bool gets(int rank, int block) const {
    switch (whole().what) {
      case Collective::reduce:
      case Collective::gather:
        return rank == whole().root;
      case Collective::scatter:
      case Collective::reduce_scatter_block:
        return rank == block;
      case Collective::alltoall:
        return rank == block % ranks();
      default:
        return true;
    }
  }

  template <class Look>
  void for_each_value(Look&& look) {
    for (int rank = 0; rank < ranks(); ++rank)
      for (std::size_t block = 0; block < values_.blocks(); ++block)
        for (std::size_t unit = 0; unit < values_.units(); ++unit)
          look(rank, static_cast<int>(block), values_.index(rank, block, static_cast<int>(unit)));
  }

  void begin() {
    for_each_value([&](int rank, int block, std::size_t index) {
      if (gives(rank, block)) values_.at(index).set(static_cast<std::size_t>(rank));
    });
  }

  // Of each block: who has something to give.
  Contributions all_of(int block) const {
    Contributions all;
    for (int rank = 0; rank < ranks(); ++rank)
      if (gives(rank, block)) all.set(static_cast<std::size_t>(rank));
    return all;
  }

  Status check_results() {
    Status status;
    for_each_value([&](int rank, int block, std::size_t index) {
      if (status.ok() && gets(rank, block) && values_.at(index) != all_of(block))
        status = {Code::invalid, text(whole()) + " as " + text(rewriting_.term) + ": " + values_.describe(index) +
                                     ": lacks contributions at the end"};
    });
    return status;
  }

  Status perform(const Term& term, Touched& touched) {
    if (term.kind == Term::Kind::motif) return Move(term.motif, values_, touched).run();
    std::vector<Touched> parts;
    for (const Term& part : term.parts)
      if (Status status = perform(part, parts.emplace_back()); !status.ok()) return status;
    if (term.kind == Term::Kind::parallel)
      if (Status status = check_apart(parts, term); !status.ok()) return status;
    for (const Touched& part : parts) touched.add(part);
    return {};
  }

  // By the part that wrote it, and a part that read it, numbered from 1; 0: none.
  Status check_apart(const std::vector<Touched>& parts, const Term& term) {
    std::vector<std::uint32_t> writer(values_.ranks() * values_.blocks() * values_.units());
    const auto complain = [&](std::size_t index) -> Status {
      return {Code::invalid, text(term) + ": " + values_.describe(index) + ": motifs in parallel meet"};
    };
    for (std::uint32_t part = 1; part <= parts.size(); ++part)
      for (const std::size_t index : parts[part - 1].written)
        if (std::uint32_t& before = writer[index]; before == 0 || before == part)
          before = part;
        else
          return complain(index);
    for (std::uint32_t part = 1; part <= parts.size(); ++part)
      for (const std::size_t index : parts[part - 1].read)
        if (writer[index] != 0 && writer[index] != part) return complain(index);
    return {};
  }

  const Rewriting& rewriting_;
  Values values_;
};

}  // namespace

Status prove(const Rewriting& rewriting) {
  const auto ranks = static_cast<std::size_t>(rewriting.whole.members());
  const std::size_t values =
      ranks * Values::blocks_of(rewriting.whole) * static_cast<std::size_t>(std::max(1, rewriting.units));
  if (ranks > most_ranks || values > most_values)
    return {Code::unsupported, text(rewriting.whole) + ": " + std::to_string(ranks) + " ranks, " +
                                   std::to_string(rewriting.units) + " units: too many to prove a rewriting of"};
  return Proof(rewriting).run();
}

}  // namespace plait::plan::motif
