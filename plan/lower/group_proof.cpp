#include "plan/lower/group_proof.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

namespace plait::plan {

namespace {

// Which members contributed to a value: mostly an unbroken run of them, counted round in a circle.
struct Contributions {
  std::int32_t first = 0, count = 0;
  std::int32_t others = -1;  // index of a bit set, where they are no such run
};

// The values that members hold: numbers, the same for two exactly when they were combined in the same way. Above a few
// members two that were combined by different messages count as different, whatever they are made of.
class GroupValues {
 public:
  static constexpr std::int32_t none = -1;

  GroupValues(int members, bool ordered) : members_(members), ordered_(ordered) {
    for (int member = 0; member < members; ++member) values_.push_back({member, 1});
  }

  // `none` where they cannot be combined in this order.
  std::int32_t combine(std::int32_t left, std::int32_t right) {
    if (members_ > most_compared) return computed(left, right);
    return combine_alike(left, right);
  }
  // The same as others who combine the same.
  std::int32_t combine_alike(std::int32_t left, std::int32_t right) {
    const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
    const auto [entry, is_new] = combined_.try_emplace(key, none);
    if (is_new) entry->second = computed(left, right);
    return entry->second;
  }

  bool is_all(std::int32_t value) const { return at(value).count == members_; }

 private:
  static constexpr int most_compared = 64;
  using Bits = std::vector<bool>;

  const Contributions& at(std::int32_t value) const { return values_[static_cast<std::size_t>(value)]; }

  std::int32_t computed(std::int32_t left, std::int32_t right) {
    const Contributions a = at(left), b = at(right);
    Contributions both{a.first, a.count + b.count};
    if (a.others >= 0 || b.others >= 0 || !united(a, b, both))
      if (ordered_ || !united_as_bits(a, b, both)) return none;
    values_.push_back(both);
    return static_cast<std::int32_t>(values_.size() - 1);
  }

  int behind(int from, int to) const { return (to - from + members_) % members_; }

  // Whether they are runs, side by side, with nobody in both.
  bool united(const Contributions& a, const Contributions& b, Contributions& both) const {
    if (ordered_) return a.first + a.count == b.first;
    if (behind(a.first, b.first) < a.count || behind(b.first, a.first) < b.count) return false;
    if (behind(a.first, b.first) == a.count) return true;
    both.first = b.first;
    return behind(b.first, a.first) == b.count;
  }

  Bits bits(const Contributions& of) const {
    if (of.others >= 0) return sets_[static_cast<std::size_t>(of.others)];
    Bits bits(static_cast<std::size_t>(members_));
    for (int i = 0; i < of.count; ++i) bits[static_cast<std::size_t>((of.first + i) % members_)] = true;
    return bits;
  }

  bool united_as_bits(const Contributions& a, const Contributions& b, Contributions& both) {
    Bits all = bits(a);
    const Bits more = bits(b);
    for (std::size_t member = 0; member < all.size(); ++member) {
      if (all[member] && more[member]) return false;
      all[member] = all[member] || more[member];
    }
    both.others = static_cast<std::int32_t>(sets_.size());
    sets_.push_back(std::move(all));
    return true;
  }

  int members_;
  bool ordered_;
  std::vector<Contributions> values_;
  std::vector<Bits> sets_;
  std::unordered_map<std::uint64_t, std::int32_t> combined_;
};

// What each member is told to do, as a number.
class Fingerprints final : public Moves {
 public:
  Fingerprints(int members, int self) : Moves(self), of_(self == everybody ? static_cast<std::size_t>(members) : 1) {}
  ~Fingerprints() override = default;

  void next_stage() override { ++stage_; }
  using Moves::combine;
  using Moves::exchange;
  using Moves::move;
  void move(int from, int to, Pieces pieces) override { note(1, from, to, pieces); }
  void combine(int from, int to, Pieces pieces) override { note(2, from, to, pieces); }
  void exchange(int one, int other, Pieces pieces) override {
    note(3, std::min(one, other), std::max(one, other), pieces);
  }
  void together(ShmCollectiveKind kind) override {
    for (std::uint64_t& one : of_) mix(one, 4 + static_cast<std::uint64_t>(kind));
  }

  std::uint64_t of(int member) const { return of_[self() == everybody ? static_cast<std::size_t>(member) : 0]; }

 private:
  static void mix(std::uint64_t& one, std::uint64_t number) {
    one = (one ^ number) * 0x9e3779b97f4a7c15u;
    one ^= one >> 29;
  }
  void note(std::uint64_t kind, int from, int to, Pieces pieces) {
    if (!wants(from, to) || pieces.empty()) return;
    std::uint64_t content = pieces.size();
    for (const int piece : pieces) content = (content ^ static_cast<std::uint64_t>(piece)) * 0xff51afd7ed558ccdu;
    for (const int member : {from, to}) {
      if (!wants(member)) continue;
      std::uint64_t& one = of_[self() == everybody ? static_cast<std::size_t>(member) : 0];
      mix(one, stage_ << 8 | kind);
      mix(one, static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to));
      mix(one, content);
    }
  }

  std::vector<std::uint64_t> of_;
  std::uint64_t stage_ = 0;
};

// Does the moves on symbols.
class GroupExecution final : public Moves {
 public:
  explicit GroupExecution(const GroupCase& group)
      : Moves(everybody),
        group_(group),
        pieces_(pieces_of(*group.algorithm, group.what, group.members)),
        values_(group.members, group.ordered),
        held_(static_cast<std::size_t>(group.members) * static_cast<std::size_t>(pieces_), GroupValues::none) {
    for (int member = 0; member < group.members; ++member)
      for (int piece = 0; piece < pieces_; ++piece) at(member, piece) = start(member, piece);
  }
  ~GroupExecution() override = default;

  using Moves::combine;
  using Moves::exchange;
  using Moves::move;

  void move(int from, int to, Pieces pieces) override {
    if (!are_fine(from, to, pieces)) return;
    for (const int piece : pieces) {
      if (at(from, piece) == GroupValues::none) return fail(from, to, piece, "gives what it does not have");
      at(to, piece) = at(from, piece);
    }
  }

  void combine(int from, int to, Pieces pieces) override {
    if (!are_fine(from, to, pieces)) return;
    for (const int piece : pieces) {
      const std::int32_t own = at(to, piece), incoming = at(from, piece);
      if (own == GroupValues::none || incoming == GroupValues::none || !reduces(group_.what))
        return fail(from, to, piece, "combines what is not there");
      at(to, piece) = from < to ? values_.combine(incoming, own) : values_.combine(own, incoming);
      if (at(to, piece) == GroupValues::none) return fail(from, to, piece, "combines twice, or out of order");
    }
  }

  void exchange(int one, int other, Pieces pieces) override {
    if (!are_fine(one, other, pieces)) return;
    const int left = std::min(one, other), right = std::max(one, other);
    for (const int piece : pieces) {
      if (at(left, piece) == GroupValues::none || at(right, piece) == GroupValues::none || !reduces(group_.what))
        return fail(left, right, piece, "combines what is not there");
      const std::int32_t both = values_.combine_alike(at(left, piece), at(right, piece));
      at(left, piece) = at(right, piece) = both;
      if (both == GroupValues::none) return fail(left, right, piece, "combines twice, or out of order");
    }
  }

  void together(ShmCollectiveKind kind) override {
    for (int piece = 0; piece < pieces_ && status_.ok(); ++piece) {
      const std::int32_t result = result_of(kind, piece);
      if (result == GroupValues::none) return fail(0, 0, piece, "is together what cannot be combined");
      for (int member = 0; member < group_.members; ++member)
        if (takes(kind, member, piece)) at(member, piece) = result;
    }
  }

  Status verdict() const {
    if (!status_.ok()) return status_;
    for (int member = 0; member < group_.members; ++member)
      for (int piece = 0; piece < pieces_; ++piece)
        if (must_have(member, piece) && !is_right(member, piece))
          return {Code::invalid, text() + "member " + std::to_string(member) +
                                     " ends with the wrong contributions, or other bits than another, in piece " +
                                     std::to_string(piece)};
    return {};
  }

 private:
  std::int32_t& at(int member, int piece) {
    return held_[static_cast<std::size_t>(member) * static_cast<std::size_t>(pieces_) +
                 static_cast<std::size_t>(piece)];
  }
  std::int32_t at(int member, int piece) const { return const_cast<GroupExecution&>(*this).at(member, piece); }

  // What nobody combines is known by its piece, or as the root's.
  std::int32_t start(int member, int piece) const {
    switch (group_.what) {
      case Instruct::all_reduce:
      case Instruct::reduce_scatter:
      case Instruct::reduce:
        return member;
      case Instruct::all_gather:
      case Instruct::gather:
        return member == piece ? piece : GroupValues::none;
      default:
        return member == 0 ? piece : GroupValues::none;
    }
  }

  bool must_have(int member, int piece) const {
    switch (group_.what) {
      case Instruct::reduce_scatter:
      case Instruct::scatter:
        return member == piece;
      case Instruct::reduce:
      case Instruct::gather:
        return member == 0;
      default:
        return true;
    }
  }

  bool is_right(int member, int piece) const {
    const std::int32_t value = at(member, piece);
    if (value == GroupValues::none) return false;
    if (!reduces(group_.what)) return value == piece;
    return values_.is_all(value) && (group_.what != Instruct::all_reduce || value == at(0, piece));
  }

  bool gives(ShmCollectiveKind kind, int member, int piece) const {
    switch (kind) {
      case ShmCollectiveKind::broadcast:
      case ShmCollectiveKind::scatter:
        return member == 0;
      case ShmCollectiveKind::all_gather:
      case ShmCollectiveKind::gather:
        return member == piece;
      default:
        return true;
    }
  }
  bool takes(ShmCollectiveKind kind, int member, int piece) const {
    switch (kind) {
      case ShmCollectiveKind::reduce:
      case ShmCollectiveKind::gather:
        return member == 0;
      case ShmCollectiveKind::reduce_scatter:
      case ShmCollectiveKind::scatter:
        return member == piece;
      default:
        return true;
    }
  }

  std::int32_t result_of(ShmCollectiveKind kind, int piece) {
    std::int32_t result = GroupValues::none;
    for (int member = 0; member < group_.members; ++member) {
      if (!gives(kind, member, piece)) continue;
      const std::int32_t given = at(member, piece);
      if (given == GroupValues::none) return given;
      if (result == GroupValues::none)
        result = given;
      else if (!plan::reduces(kind) || (result = values_.combine_alike(result, given)) == GroupValues::none)
        return GroupValues::none;
    }
    return result;
  }

  bool are_fine(int from, int to, Pieces pieces) {
    const auto is_member = [&](int member) { return member >= 0 && member < group_.members; };
    const auto is_piece = [&](int piece) { return piece >= 0 && piece < pieces_; };
    if (status_.ok() && (!is_member(from) || !is_member(to) || from == to || !std::ranges::all_of(pieces, is_piece)))
      fail(from, to, -1, "names no two members, or no piece");
    return status_.ok();
  }

  std::string text() const {
    return "proof: " + std::string(name(group_.what)) + " by '" + std::string(group_.algorithm->name) +
           "' in a group of " + std::to_string(group_.members) + ": ";
  }
  void fail(int from, int to, int piece, const char* why) {
    status_ = {Code::invalid, text() + "the message from member " + std::to_string(from) + " to " + std::to_string(to) +
                                  " of piece " + std::to_string(piece) + " " + why};
  }

  const GroupCase& group_;
  int pieces_;
  GroupValues values_;
  std::vector<std::int32_t> held_;
  Status status_;
};

// Whether it tells each member alone what it tells all.
Status prove_restrictions(const GroupCase& group) {
  const GroupWork work{group.what, group.members, group.outer};
  Fingerprints all(group.members, Moves::everybody);
  group.algorithm->emit(all, work);
  for (int member = 0; member < group.members; ++member) {
    Fingerprints own(group.members, member);
    group.algorithm->emit(own, work);
    if (own.of(member) != all.of(member))
      return {Code::invalid, "proof: " + std::string(name(group.what)) + " by '" + std::string(group.algorithm->name) +
                                 "' in a group of " + std::to_string(group.members) + ": member " +
                                 std::to_string(member) + " alone is told otherwise than among all"};
  }
  return {};
}

}  // namespace

Status prove_group(const GroupCase& group) {
  if (!small_enough_to_prove(*group.algorithm, group.what, group.members))
    return {Code::unsupported, "proof: a group of " + std::to_string(group.members) + " is too large to prove '" +
                                   std::string(group.algorithm->name) + "' in"};
  GroupExecution execution(group);
  group.algorithm->emit(execution, {group.what, group.members, group.outer});
  const Status verdict = execution.verdict();
  return verdict.ok() ? prove_restrictions(group) : verdict;
}

const Status& GroupProofs::of(const GroupCase& group) {
  Key key{group.algorithm, group.what, group.members, group.ordered, {}};
  if (group.algorithm->knows_outer) std::get<4>(key).assign(group.outer.begin(), group.outer.end());
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(std::move(key), prove_group(group)).first->second;
}

}  // namespace plait::plan
