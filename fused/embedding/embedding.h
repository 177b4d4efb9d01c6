// Embedding pooling and all-to-all in one: what plait_fused_embedding_create() makes. Each rank has some tables, whole;
// it looks up the bags of the whole batch in them. The output of each rank is its share of the batch, a row a sample:
// the bags of all ranks' tables side by side, ready for the next layer.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h). Each rank computes tables * batch bags and sends
// (N - 1)/N of them; the others lie where they are computed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/embedding/arguments.h"
#include "fused/embedding/embedding_device.h"
#include "fused/embedding/embedding_layout.h"
#include "fused/exchange/exchange.h"
#include "fused/frame/tile_plan.h"
#include "fused/kernels/pooling.h"
#include "fused/layer.h"
#include "fused/run/tile_run.h"
#include "fused/tiles/tiles.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class Embedding final : public TilePlan {
 public:
  static Result<std::unique_ptr<Embedding>> make(Oob& all, const EmbeddingArguments& arguments,
                                                 const MakeMembers& make_members) {
    return make_tile_plan<Embedding>(all, arguments, make_members);
  }
  ~Embedding() override { end(); }

  Status read(const EmbeddingArguments& given, int ranks, int rank);
  std::vector<Alike> alike() const override { return alike_of(problem_); }

  // Begins a run. `lookup` stays as it is, and the output is left alone, until wait().
  Status start(const Lookup& lookup);

 private:
  const char* name() const override { return "embedding"; }
  const PlanOptions& options() const override { return problem_.options; }
  Status meet(Oob& oob) override { return layout_.meet(oob, problem_); }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  void visit_data(DataVisitor& visit) override { visit_problem(problem_, layout_.end_bytes(), visit); }
  void prepare() override { kernel_ = pooling_kernel(problem_.type, problem_.weighted); }
  std::string text_of(const Complaint& complaint) const override { return lookup_complaint_text(complaint); }
  DeviceWork* device_work() override;
  void lay_out_on_devices(DeviceRunRequest& request) override;
  Blocks blocks_of(const Pane& pane, const EmbeddingLayout::Pair& pair) const;

  void compute(const TilePlace& place) noexcept override;

  EmbeddingProblem problem_;
  EmbeddingLayout layout_;
  PoolingKernel kernel_ = nullptr;
  Lookup lookup_;                              // of the run at hand
  std::unique_ptr<EmbeddingOnDevice> device_;  // nullptr: data are elsewhere
};

}  // namespace plait::fused
