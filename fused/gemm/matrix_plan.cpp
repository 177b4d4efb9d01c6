#include "fused/gemm/matrix_plan.h"

#include <algorithm>

#include "core/log.h"
#include "runtime/job/job.h"

namespace plait::fused {
namespace {

// A kernel reads and writes its results once a part: this is long enough that it does not count (measured: 0 to 3 %),
// and some milliseconds of a tile of the best size.
constexpr std::int64_t depth_between_breaths = 1024;

}  // namespace

void MatrixPlan::prepare() {
  const std::string& library = job().config.blas;
  gemm_ = Gemm::find(library, run().workers());
  const bool is_missed = library != "auto" && library != "none" && gemm_.is_own();
  if (is_missed && is_first_of_node())
    warn("PLAIT_BLAS: '" + library + "' has no cblas_sgemm(), or none for several workers: products of matrices are " +
         "Plait's own, which are slower");
  for (int of = 0; of < ranks(); ++of) breathes_ |= run().exchange().reach(of) == Reach::messages;
}

// Which files there are is a matter of nodes.
bool MatrixPlan::is_first_of_node() const {
  for (int of = 0; of < rank(); ++of)
    if (node_of(of) == node_of(rank())) return false;
  return true;
}

bool MatrixPlan::have_come(int source, const Range& rows, std::int64_t slice_rows) const {
  for (std::int64_t slice = rows.begin / slice_rows; slice * slice_rows < rows.end; ++slice)
    if (!run().exchange().has_come(source, static_cast<std::uint32_t>(slice))) return false;
  return true;
}

void MatrixPlan::multiply(const GemmTile& tile, int worker) noexcept {
  if (!breathes_ || tile.depth <= depth_between_breaths) return gemm_(tile);
  GemmTile part = tile;
  for (std::int64_t done = 0; done < tile.depth; done += part.depth) {
    part.depth = std::min(depth_between_breaths, tile.depth - done);
    part.a = tile.a + done;
    part.b = tile.b + done * tile.b_pitch;
    part.adds = tile.adds || done > 0;
    gemm_(part);
    run().breathe(worker);
  }
}

}  // namespace plait::fused
