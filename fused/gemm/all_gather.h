// An all-gather and the product of matrices that needs it, in one: what plait_fused_all_gather_gemm_create() makes.
// Each rank has a share of the rows of x, and weights W_r, depth x columns_r, of its own; its output is x W_r, all
// rows.
//
// Steps and bytes: each rank leaves its rows with all others, slice by slice, those first whose way is the longest:
// (N - 1) rows * depth / N f32. It multiplies its own rows first, then others' as they come: a block of rows once the
// slices that it lies in have.
//
// The method: Punniyamurthy et al., SC '24 (fused/tiles/tiles.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/gemm/all_gather_device.h"
#include "fused/gemm/gemm_arguments.h"
#include "fused/gemm/matrix_plan.h"
#include "fused/layer.h"
#include "fused/tiles/blocks.h"

namespace plait::fused {

class AllGatherGemm final : public MatrixPlan {
 public:
  static Result<std::unique_ptr<AllGatherGemm>> make(Oob& all, const GemmArguments& arguments,
                                                     const MakeMembers& make_members) {
    return make_tile_plan<AllGatherGemm>(all, arguments, make_members);
  }
  ~AllGatherGemm() override { end(); }

  Status read(const GemmArguments& given, int ranks, int rank);
  std::vector<Alike> alike() const override;

  // Begins a run with `x`, this rank's share of the rows, row after row. It stays as it is, and the output is left
  // alone, until wait().
  Status start(const float* x);

 private:
  // What comes from a rank: the blocks of the output that are made of it.
  struct Source {
    int rank = 0;
    Range rows;
    std::int64_t row_blocks = 0, column_blocks = 0;
  };

  const char* name() const override { return "all_gather_gemm"; }
  const PlanOptions& options() const override { return problem_.options; }
  Status lay_out(ExchangeRequest& exchange, TileRunRequest& run) override;
  void visit_data(DataVisitor& visit) override;
  DeviceWork* device_work() override;
  void lay_out_on_devices(DeviceRunRequest& request) override;

  Range rows_of(int rank) const { return share_of(problem_.rows, ranks(), rank); }
  Pane pane_of(int source) const;
  Blocks slices_of(int source) const;
  void line_up_sources(const TileRunRequest& run);
  const Source& source_of(const Task& task) const { return sources_[static_cast<std::size_t>(task.chain)]; }
  // Of the source's rows.
  Range rows_in(const Source& source, const Task& task) const;

  void compute(const TilePlace& place) noexcept override;
  std::int64_t tasks_of(int chain) const noexcept override;
  bool is_ready(const Task& task) const noexcept override;
  void follow(const Task& task, int worker) noexcept override;

  GemmProblem problem_;
  std::int64_t slice_rows_ = 1;
  BlockShape block_;
  std::vector<Source> sources_;                // by chain
  const float* x_ = nullptr;                   // of the run at hand
  std::unique_ptr<AllGatherOnDevice> device_;  // nullptr: data are elsewhere
};

}  // namespace plait::fused
