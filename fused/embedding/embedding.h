// Embedding pooling and all-to-all in one: what plait_fused_embedding_create() makes. Each rank has some tables, whole;
// it looks up the bags of the whole batch in them. The output of each rank is its share of the batch, a row a sample:
// the bags of all ranks' tables side by side, ready for the next layer.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h). Each rank computes tables * batch bags and sends
// (N - 1)/N of them; the others lie where they are computed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/embedding/arguments.h"
#include "fused/embedding/embedding_layout.h"
#include "fused/exchange/exchange.h"
#include "fused/ground/fused_plan.h"
#include "fused/ground/ground.h"
#include "fused/kernels/pooling.h"
#include "fused/layer.h"
#include "fused/run/tile_run.h"
#include "fused/tiles/tiles.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class Embedding final : public FusedPlan, private TileWork {
 public:
  // Collective over `all`; blocks. All ranks succeed or all fail; a rank without a complaint of its own has that of the
  // first one with one.
  static Result<std::unique_ptr<Embedding>> make(Oob& all, const EmbeddingArguments& arguments,
                                                 const MakeMembers& make_members);

  // Begins a run. `lookup` stays as it is, and the output is left alone, until wait(). Does not block; allocates
  // nothing, but what a channel takes. With one worker the computation is wait()'s.
  Status start(const Lookup& lookup);
  // Ends it: this rank's output is complete. `invalid` on all ranks where a rank's lookup cannot be used, with the
  // argument, the rank and the value: no output was touched, and the plan is as good as before. After any other failure
  // the plan can only be freed.
  Status wait() override;

  Members& members() override { return ground_->members(); }
  int workers() const { return run_->workers(); }
  // What was planned, as JSON: workers, slices, and how they reach the others.
  const std::string& description() const override { return description_; }

 private:
  Embedding() = default;
  static Result<std::unique_ptr<Embedding>> make_together(Oob& all, const EmbeddingArguments& arguments,
                                                          const MakeMembers& make_members);
  Status connect(Oob& all, const MakeMembers& make_members);
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) const;
  Blocks blocks_of(const Pane& pane, const EmbeddingLayout::Pair& pair) const;
  void describe();
  void compute(const TilePlace& place) noexcept override;

  EmbeddingProblem problem_;
  std::unique_ptr<Ground> ground_;
  EmbeddingLayout layout_;
  PoolingKernel kernel_ = nullptr;
  std::string description_;
  Lookup lookup_;                 // of the run at hand
  std::unique_ptr<TileRun> run_;  // last: it ends first
};

}  // namespace plait::fused
