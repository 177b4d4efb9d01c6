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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/embedding/arguments.h"
#include "fused/embedding/embedding_layout.h"
#include "fused/exchange/exchange.h"
#include "fused/frame/tile_plan.h"
#include "fused/kernels/scatter.h"
#include "fused/layer.h"
#include "fused/run/tile_run.h"
#include "fused/tiles/tiles.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class EmbeddingBack final : public TilePlan {
 public:
  static Result<std::unique_ptr<EmbeddingBack>> make(Oob& all, const EmbeddingArguments& arguments,
                                                     const MakeMembers& make_members) {
    return make_tile_plan<EmbeddingBack>(all, arguments, make_members);
  }
  ~EmbeddingBack() override { end(); }

  Status read(const EmbeddingArguments& given, int ranks, int rank);
  std::vector<Alike> alike() const override { return alike_of(problem_); }

  // Begins a run. `lookup` and the gradients stay as they are, and the tables are left alone, until wait(). After a run
  // that is refused no table was touched; after one that failed some rows may have been added to.
  Status start(const Lookup& lookup, float factor);

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
  // A chain of tasks: the additions to some columns of a table.
  struct Part {
    std::size_t table = 0;
    Range columns;
  };

  const char* name() const override { return "embedding_back"; }
  const PlanOptions& options() const override { return problem_.options; }
  Status meet(Oob& oob) override { return layout_.meet(oob, problem_); }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  void visit_data(DataVisitor& visit) override { visit_problem(problem_, layout_.end_bytes(), visit); }
  void prepare() override { kernel_ = scatter_kernel(problem_.type, problem_.weighted); }
  std::string text_of(const Complaint& complaint) const override { return lookup_complaint_text(complaint); }
  void line_up_additions(int source, const Pane& pane);
  void cut_tables(int workers);

  void compute(const TilePlace& place) noexcept override;
  std::int64_t tasks_of(int chain) const noexcept override;
  bool is_ready(const Task& task) const noexcept override;
  void follow(const Task& task, int worker) noexcept override;
  const Addition& addition(const Task& task) const {
    return additions_[parts_[static_cast<std::size_t>(task.chain)].table][task.number];
  }

  EmbeddingProblem problem_;
  EmbeddingLayout layout_;
  ScatterKernel kernel_ = nullptr;
  std::vector<std::vector<Addition>> additions_;  // by table of this rank
  std::vector<Part> parts_;                       // by chain
  // Of the run at hand.
  Lookup lookup_;
  float factor_ = 1;
};

}  // namespace plait::fused
