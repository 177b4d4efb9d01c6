// The backward direction of embedding pooling and all-to-all: what plait_fused_embedding_back_create() makes. Each rank
// has the gradients of its share of the batch, a row a sample: those of all ranks' tables side by side, as the forward
// direction's output lies. They go to the ranks that have the tables, and are added there to the rows of their bags:
//
//   row[index] += factor * (the index' weight, or 1 / the bag's rows, or 1) * the bag's gradient
//
// which is a step of stochastic gradient descent with a factor of -learning rate, or collects the gradients where the
// rows are zeros before and the factor is 1.
//
// Steps and bytes: each rank sends (N - 1)/N of its gradients, slice by slice, and adds tables * batch of them to rows.
// Nobody meets between slices. A table's additions have an order of their own, whoever makes them and whenever a slice
// comes: the samples of this rank first, as they are there, then those of the ranks in the order of arrival_order(),
// each in the order of its samples. So a table waits only for the next slice of its own order, the others go on, and
// the same gradients make the same bits in every run, with any number of workers.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h), turned around.
#pragma once

#include <atomic>
#include <cstddef>
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
#include "fused/kernels/scatter.h"
#include "fused/layer.h"
#include "fused/run/tile_run.h"
#include "fused/tiles/tiles.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class EmbeddingBack final : public FusedPlan, private TileWork {
 public:
  // Collective over `all`; blocks. All ranks succeed or all fail; a rank without a complaint of its own has that of the
  // first one with one.
  static Result<std::unique_ptr<EmbeddingBack>> make(Oob& all, const EmbeddingArguments& arguments,
                                                     const MakeMembers& make_members);

  // Begins a run. `lookup` and the gradients stay as they are, and the tables are left alone, until wait(). Does not
  // block; allocates nothing, but what a channel takes. With one worker the computation is wait()'s.
  Status start(const Lookup& lookup, float factor);
  // Ends it: this rank's tables are complete, and its gradients may be changed. `invalid` on all ranks where a rank's
  // lookup cannot be used, with the argument, the rank and the value: no table was touched, and the plan is as good as
  // before. After any other failure the plan can only be freed, and some rows may have been added to.
  Status wait() override;

  Members& members() override { return ground_->members(); }
  // What was planned, as JSON: workers, slices, and how they reach the others.
  const std::string& description() const override { return description_; }

 private:
  // A tile's gradients where they come to: of one table, of some samples that follow each other.
  struct Addition {
    int source = 0;
    std::uint32_t slice = 0;
    Range samples;             // of the batch
    std::int64_t end = 0;      // of the source's samples
    std::uint64_t offset = 0;  // in the slice, or in this rank's gradients
    std::uint64_t pitch = 0;   // likewise, from one sample to the next
  };
  // Columns of one table, whose additions have an order. Workers take turns at it.
  struct Chain {
    std::int64_t table = 0;
    Range columns;
    const std::vector<Addition>* additions = nullptr;
    std::size_t done = 0;  // additions; whoever has the turn changes it
    std::atomic_flag taken;
  };
  // Where a worker looks first.
  struct alignas(64) Place {
    std::size_t chain = 0;
  };

  EmbeddingBack() = default;
  static Result<std::unique_ptr<EmbeddingBack>> make_together(Oob& all, const EmbeddingArguments& arguments,
                                                              const MakeMembers& make_members);
  Status connect(Oob& all, const MakeMembers& make_members);
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run);
  void line_up_additions(int source, const Pane& pane);
  void make_chains(int workers);
  void describe();

  void compute(const TilePlace& place) noexcept override;
  bool use_what_has_come(int worker) noexcept override;
  bool has_used_all() const noexcept override { return left_.load(std::memory_order_acquire) == 0; }
  enum class Step : std::uint8_t { one, none, last };
  Step advance(Chain& chain);
  void add(const Chain& chain, const Addition& addition);

  EmbeddingProblem problem_;
  std::unique_ptr<Ground> ground_;
  EmbeddingLayout layout_;
  ScatterKernel kernel_ = nullptr;
  std::vector<std::vector<Addition>> additions_;  // by table of this rank
  std::vector<std::unique_ptr<Chain>> chains_;    // those with additions
  std::vector<Place> places_;                     // by worker
  std::string description_;

  // Of the run at hand.
  Lookup lookup_;
  float factor_ = 1;
  alignas(64) std::atomic<std::size_t> left_{0};  // chains that are not through

  std::unique_ptr<TileRun> run_;  // last: it ends first
};

}  // namespace plait::fused
