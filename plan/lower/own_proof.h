// Whether one rank's schedule does its part of a program's moves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "plan/lower/rank_proof.h"
#include "plan/model/block_moves.h"

namespace plait::plan {

// Follows the rank's moves in the order in which they are said, with a number for each value that the rank comes to
// hold. For each the next step of the lane must have the move's kind and blocks, wait only for steps of earlier moves,
// give the values that the rank holds by then, and put what it gets where later steps look for it.
class OwnProof final : public BlockMoves {
 public:
  // Precondition: RankProof's check_form() and check_order() are ok for the schedule. Keeps references.
  OwnProof(const Semantics& semantics, const Routes& routes, int rank, const RankProof& proof);
  ~OwnProof() override = default;

  void move(int from, int to, std::span<const BlockRun> blocks) override;
  void combine(int from, int to, std::span<const BlockRun> blocks, bool on_the_left) override;
  void exchange(int left, int right, std::span<const BlockRun> blocks) override;
  void together(const ShmCollectiveCall& call) override;

  // After all moves: no step is left over, and every result is in its cell.
  Status finish();

 private:
  using Value = std::uint32_t;  // 0: none; 1: what the rank put in; else of the move that made it
  using LaneKey = std::tuple<ChannelKind, std::int8_t, std::int32_t, bool /* sends */>;
  struct Lane {
    std::vector<std::uint32_t> steps;
    std::size_t next = 0;
  };
  // By block; of an all-to-all, of whose blocks a rank has few, only those.
  class HeldValues {
   public:
    explicit HeldValues(const Semantics& semantics)
        : sparse_(semantics.collective() == Collective::alltoall), all_(sparse_ ? 0 : semantics.blocks()) {}
    Value& operator[](BlockId block) { return sparse_ ? few_[block] : all_[block]; }

   private:
    bool sparse_;
    std::vector<Value> all_;
    std::unordered_map<BlockId, Value> few_;
  };
  struct Receipt {
    bool combines = false, on_the_left = false;
  };

  static LaneKey together_key() { return {ChannelKind::shm, any_rail, -1, false}; }
  bool begin(std::span<const BlockRun> blocks);
  std::optional<std::uint32_t> next_step(const LaneKey& key, const char* what);
  std::optional<std::uint32_t> message_step(int peer, bool sends, std::span<const BlockRun> blocks);
  bool may_start(std::uint32_t step);
  bool run_local(std::uint32_t step);
  bool check_blocks(std::uint32_t step, RunList list, std::span<const BlockRun> blocks, const char* what);
  bool check_values(std::uint32_t step, RunList list);
  void send(int to, std::span<const BlockRun> blocks);
  void receive(int from, std::span<const BlockRun> blocks, const Receipt& receipt);
  bool check_send(std::uint32_t step, std::span<const BlockRun> blocks);
  bool take(std::uint32_t step, std::span<const BlockRun> blocks, const Receipt& receipt);
  void put(RunList list, Value value);
  void fail(std::size_t step, const std::string& what);

  int rank_;
  const RankProof& proof_;
  std::map<LaneKey, Lane> lanes_;
  std::vector<bool> done_;  // by step
  HeldValues held_;         // what the rank must have
  // By memory cell, apart and in place; where input and output never share memory only apart.
  std::vector<std::vector<Value>> memory_;
  Value turn_ = 1;  // of the latest move
  Status status_;
};

}  // namespace plait::plan
