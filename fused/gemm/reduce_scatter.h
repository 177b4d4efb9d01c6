// A product of matrices whose depth is spread over the ranks, and its reduce-scatter, in one: what
// plait_fused_gemm_reduce_scatter_create() makes. Rank r has x_r, rows x depth_r, and weights W_r, depth_r x columns;
// its output is its share of the rows of the sum of all x_r W_r.
//
// Steps and bytes: each rank computes its part of all rows, block by block, others' rows first; the sum of the parts is
// that of fused/run/rank_sum.h, for the owner alone.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/gemm/gemm_arguments.h"
#include "fused/gemm/gemm_device.h"
#include "fused/gemm/matrix_plan.h"
#include "fused/layer.h"
#include "fused/run/rank_sum.h"
#include "fused/tiles/blocks.h"

namespace plait::fused {

class GemmReduceScatter final : public MatrixPlan {
 public:
  static Result<std::unique_ptr<GemmReduceScatter>> make(Oob& all, const GemmArguments& arguments,
                                                         const MakeMembers& make_members) {
    return make_tile_plan<GemmReduceScatter>(all, arguments, make_members);
  }
  ~GemmReduceScatter() override { end(); }

  Status read(const GemmArguments& given, int ranks, int rank);
  std::vector<Alike> alike() const override;

  // Begins a run with `x`, rows x depth, row after row. It stays as it is, and the output is left alone, until wait().
  Status start(const float* x);

 private:
  const char* name() const override { return "gemm_reduce_scatter"; }
  const PlanOptions& options() const override { return problem_.options; }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  void visit_data(DataVisitor& visit) override;
  void prepare() override;
  DeviceWork* device_work() override;
  void lay_out_on_devices(DeviceRunRequest& request) override;

  Range rows_of(int owner) const;
  std::vector<Pane> panes() const;
  Pane pane_of(int owner, std::size_t bytes_of_slice) const;
  // What a box of blocks has of the rows of all ranks, and of the columns.
  Box elements_in(int owner, const Box& blocks) const;
  Block block_of(int owner, const Slice& slice) const;

  void compute(const TilePlace& place) noexcept override;
  std::int64_t tasks_of(int) const noexcept override { return sum_.slices(); }
  bool is_ready(const Task& task) const noexcept override { return sum_.has_all_parts(task.number); }
  void follow(const Task& task, int worker) noexcept override { sum_.add(task.number, worker); }

  GemmProblem problem_;
  BlockShape block_;
  RankSum sum_;
  const float* x_ = nullptr;              // of the run at hand
  std::unique_ptr<GemmOnDevice> device_;  // nullptr: data are elsewhere
};

}  // namespace plait::fused
