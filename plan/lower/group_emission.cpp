#include "plan/lower/group_emission.h"

#include <algorithm>
#include <utility>

namespace plait::plan {

namespace {

int place_of(int rank, std::span<const int> members) {
  return static_cast<int>(std::ranges::find(members, rank) - members.begin());
}

// Puts ranks for members and segments for pieces, stage by stage, chunk by chunk.
class GroupEmission final : public Moves {
 public:
  GroupEmission(const Algorithm& algorithm, Instruct what, const RankGroup& group, BlockMoves& target)
      : Moves(target.only() == BlockMoves::all_ranks ? everybody : place_of(target.only(), group.members)),
        group_(group),
        pieces_(pieces_of(algorithm, what, static_cast<int>(group.members.size()))),
        target_(target) {}
  ~GroupEmission() override = default;

  void next_stage() override {
    for (const int chunk : target_.chunks())
      for (const Message& message : stage_) pass_on(message, chunk);
    stage_.clear();
  }

  using Moves::combine;
  using Moves::exchange;
  using Moves::move;
  void move(int from, int to, Pieces pieces) override { note({Kind::move, from, to, {}}, pieces); }
  void combine(int from, int to, Pieces pieces) override { note({Kind::combine, from, to, {}}, pieces); }
  void exchange(int one, int other, Pieces pieces) override {
    note({Kind::exchange, std::min(one, other), std::max(one, other), {}}, pieces);
  }

  void together(ShmCollectiveKind kind) override {
    std::vector<Segments> pieces;
    for (int piece = 0; piece < pieces_; ++piece) pieces.push_back(group_.piece(piece));
    next_stage();
    for (const int chunk : target_.chunks()) {
      std::vector<BlockRuns> blocks;
      for (const Segments& piece : pieces) blocks.push_back(blocks_of(piece, chunk));
      const BlockRuns all = blocks_of(group_.segments, chunk);
      target_.together({kind, group_.members, 0, blocks, all});
    }
  }

 private:
  enum class Kind { move, combine, exchange };
  struct Message {
    Kind kind;
    int from, to;  // members
    Segments segments;
  };

  void note(Message message, Pieces pieces) {
    if (!wants(message.from, message.to)) return;
    for (const int piece : pieces) append(message.segments, group_.piece(piece));
    if (!message.segments.empty()) stage_.push_back(std::move(message));
  }

  int rank(int member) const { return group_.members[static_cast<std::size_t>(member)]; }

  void pass_on(const Message& message, int chunk) {
    const BlockRuns blocks = blocks_of(message.segments, chunk);
    if (message.kind == Kind::move)
      target_.move(rank(message.from), rank(message.to), blocks);
    else if (message.kind == Kind::combine)
      target_.combine(rank(message.from), rank(message.to), blocks, message.from < message.to);
    else
      target_.exchange(rank(message.from), rank(message.to), blocks);
  }

  const RankGroup& group_;
  int pieces_;
  BlockMoves& target_;
  std::vector<Message> stage_;
};

}  // namespace

void emit(const Algorithm& algorithm, Instruct what, const RankGroup& group, BlockMoves& target) {
  GroupEmission emission(algorithm, what, group, target);
  algorithm.emit(emission, {what, static_cast<int>(group.members.size()), group.outer});
  emission.next_stage();
}

}  // namespace plait::plan
