// What both halves of a layer of experts have in common. Each rank has tokens, each of which chooses some experts of
// all ranks', and some experts. With its announcement of a run each rank notes for each other how many of its tokens
// have chosen each of that one's experts, so that both know what rows pass between them: in the order of routing.h.
//
// Runs differ in their rows: places are made for `capacity` rows of each pair of ranks.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/exchange/exchange.h"
#include "fused/gemm/matrix_plan.h"
#include "fused/layer.h"
#include "fused/moe/moe_arguments.h"
#include "fused/moe/pieces.h"
#include "fused/moe/routing.h"
#include "fused/tiles/blocks.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

class MoePlan : public MatrixPlan, protected Listener {
 public:
  std::vector<Alike> alike() const override { return moe_alike(problem_); }

 protected:
  const PlanOptions& options() const override { return problem_.options; }
  Status meet(Oob& oob) override;
  void visit_data(DataVisitor& visit) override;
  // Of this rank.
  virtual std::int64_t output_floats() const = 0;
  // The notes, and how rows of this rank's experts are cut.
  void lay_out_notes(ExchangeRequest& request, std::int64_t piece_rows);
  std::string text_of(const Complaint& complaint) const override { return moe_complaint_text(complaint); }

  // Sorts the tokens and writes the notes; true: there is a complaint.
  bool route(const std::int32_t* experts, Complaint& complaint);
  // Of the listener: reads the rank's note.
  void read_note(int rank);
  // A rank's tokens that have chosen experts of this one: known once its note is read.
  const Pieces& pieces_from(int rank) const { return pieces_[static_cast<std::size_t>(rank)]; }
  const std::vector<Pieces>& pieces() const { return pieces_; }
  // By rank and expert of this one.
  const std::vector<std::int64_t>& counts() const { return counts_; }

  MoeProblem problem_;
  Routing routing_;  // of this rank's tokens

 private:
  std::vector<std::int64_t> first_experts_;  // by rank, among all ranks'; and how many there are
  std::vector<std::int64_t> counts_;         // by rank and expert of this one
  std::vector<Pieces> pieces_;               // by rank
};

}  // namespace plait::fused
