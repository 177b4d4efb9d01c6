// What operators whose tiles are products of matrices have in common: the kernel, and how a worker calls it.
#pragma once

#include "fused/frame/tile_plan.h"
#include "fused/kernels/gemm.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

class MatrixPlan : public TilePlan {
 protected:
  void prepare() override;
  // For tiles and tasks. A product that takes long is made in parts of its depth, where messages must move meanwhile.
  void multiply(const GemmTile& tile, int worker) noexcept;
  // Whether rows of a source's have, of which each slice has `slice_rows`.
  bool have_come(int source, const Range& rows, std::int64_t slice_rows) const;

 private:
  bool is_first_of_node() const;

  Gemm gemm_;
  bool breathes_ = false;
};

}  // namespace plait::fused
