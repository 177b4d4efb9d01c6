// A product with weights whose depth is spread over the ranks, and its all-reduce, in one: what
// plait_fused_gemv_create() makes. Rank r has weights W_r and vectors x_r; each rank's output is the sum of all W_r
// x_r.
//
// Steps and bytes: the rows of the result are shared out among the ranks, who own them. Each rank computes its part of
// every row, others' rows first; the sum of the parts is that of fused/run/rank_sum.h, stored to all.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/exchange/exchange.h"
#include "fused/frame/tile_plan.h"
#include "fused/gemv/gemv_arguments.h"
#include "fused/gemv/gemv_device.h"
#include "fused/kernels/gemv.h"
#include "fused/layer.h"
#include "fused/run/rank_sum.h"
#include "fused/run/tile_run.h"
#include "fused/tiles/tiles.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class Gemv final : public TilePlan {
 public:
  static Result<std::unique_ptr<Gemv>> make(Oob& all, const GemvArguments& arguments, const MakeMembers& make_members) {
    return make_tile_plan<Gemv>(all, arguments, make_members);
  }
  ~Gemv() override { end(); }

  Status read(const GemvArguments& given, int ranks, int rank);
  std::vector<Alike> alike() const override;

  // Begins a run with `columns` vectors of `depth` f32, one after the other. They stay as they are, and the output is
  // left alone, until wait().
  Status start(const float* x);

 private:
  const char* name() const override { return "gemv"; }
  const PlanOptions& options() const override { return problem_.options; }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  void visit_data(DataVisitor& visit) override;
  void prepare() override;
  DeviceWork* device_work() override;
  void lay_out_on_devices(DeviceRunRequest& request) override;
  std::vector<Pane> panes(const TurnLength& turn) const;
  Pane pane_of(int owner, std::size_t bytes_of_slice, const TurnLength& turn) const;
  Block block_of(const Slice& slice) const;

  void compute(const TilePlace& place) noexcept override;
  std::int64_t tasks_of(int) const noexcept override { return sum_.slices(); }
  bool is_ready(const Task& task) const noexcept override { return sum_.has_all_parts(task.number); }
  void follow(const Task& task, int worker) noexcept override;

  GemvProblem problem_;
  RankSum sum_;
  GemvKernel kernel_ = nullptr;
  const float* x_ = nullptr;              // of the run at hand
  std::unique_ptr<GemvOnDevice> device_;  // nullptr: data are elsewhere
};

}  // namespace plait::fused
