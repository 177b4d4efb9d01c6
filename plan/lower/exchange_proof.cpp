#include "plan/lower/exchange_proof.h"

#include <algorithm>
#include <string>
#include <vector>

#include "plan/lower/own_proof.h"

namespace plait::plan {

namespace {

// Counts what goes straight from who has it to who wants it.
class DirectMoves final : public BlockMoves {
 public:
  DirectMoves(const Semantics& semantics, const Routes& routes, int rank)
      : BlockMoves(semantics, routes, rank),
        rank_(rank),
        sent_(static_cast<std::size_t>(semantics.ranks() * semantics.chunks())),
        received_(sent_.size()) {}
  ~DirectMoves() override = default;

  void move(int from, int to, std::span<const BlockRun> blocks) override {
    if (from != rank_ && to != rank_) return;
    for (const BlockRun& run : blocks)
      for (int segment = run.first; segment < run.first + run.count; ++segment) count(from, to, segment, run.chunk);
  }
  void combine(int, int, std::span<const BlockRun>, bool) override { direct_ = false; }
  void exchange(int, int, std::span<const BlockRun>) override { direct_ = false; }
  void together(const ShmCollectiveCall& call) override {
    const std::size_t members = call.members.size();
    if (call.kind != ShmCollectiveKind::all_to_all) direct_ = false;
    for (std::size_t pair = 0; direct_ && members > 1 && pair < call.pieces.size(); ++pair)
      move(call.members[pair / members], call.members[pair % members], call.pieces[pair]);
  }

  Status verdict() const {
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const int other = static_cast<int>(i) / semantics_.chunks();
      const bool once = sent_[i] == 1 && received_[i] == 1;
      if (!direct_ || (other == rank_ ? sent_[i] > 1 : !once))
        return {Code::invalid, "proof: rank " + std::to_string(rank_) + " and rank " + std::to_string(other) +
                                   " do not exchange what they have for each other, straight and once"};
    }
    return {};
  }

 private:
  void count(int from, int to, int segment, int chunk) {
    if (segment / semantics_.ranks() != from || segment % semantics_.ranks() != to) direct_ = false;
    const auto place = [&](int other) { return static_cast<std::size_t>(other * semantics_.chunks() + chunk); };
    if (from == rank_) ++sent_[place(to)];
    if (to == rank_) ++received_[place(from)];
  }

  int rank_;
  std::vector<int> sent_, received_;  // by the other rank and chunk
  bool direct_ = true;
};

Status waits_for_nothing(const Schedule& schedule, int rank) {
  for (std::size_t i = 0; i < schedule.steps.size(); ++i)
    if (!is_local(schedule.steps[i].kind) && schedule.steps[i].after.count > 0)
      return violation(rank, i, "waits, although it needs nothing");
  return {};
}

}  // namespace

Status prove_direct(const Exchange& exchange, const Hierarchy& hierarchy, const Routes& routes, const OwnPlan& own,
                    int rank) {
  DirectMoves direct(own.semantics, routes, rank);
  exchange.emit(direct, hierarchy);
  if (Status status = direct.verdict(); !status.ok()) return status;
  if (Status status = waits_for_nothing(own.schedule, rank); !status.ok()) return status;
  RankProof proof(own.semantics, rank, own.schedule, false);
  if (Status status = proof.check_form(); !status.ok()) return status;
  if (Status status = proof.check_order(); !status.ok()) return status;
  OwnProof follower(own.semantics, routes, rank, proof);
  exchange.emit(follower, hierarchy);
  return follower.finish();
}

}  // namespace plait::plan
