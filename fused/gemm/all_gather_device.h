// An all-gather and the product of matrices that needs it, on a device (tl::DeviceGather): this rank's rows are stored
// into memory that the others' devices have for them, tile by tile, and what has come is multiplied by the same kernel;
// what came too late for that, and only that, by another one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/device/device_run.h"
#include "fused/device/given_data.h"
#include "fused/gemm/gemm_arguments.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

class AllGatherOnDevice final : public DeviceWork {
 public:
  // `problem` stays. Throws where memory is short.
  AllGatherOnDevice(const GemmProblem& problem, int rank, int ranks) : problem_(problem), rank_(rank), ranks_(ranks) {}

  // What the next run multiplies.
  void take(const float* x) { given_ = x; }
  // How slices of about so many bytes are cut, the same on all ranks. Before the plan is laid out.
  void cut_by(std::size_t slice_bytes);
  // A source's rows, cut for its way to any other.
  Pane pane_of(int source) const;
  // What a rank has room for of each other one's rows.
  std::uint64_t part_bytes() const;

  Status prepare(const DeviceGround& ground) override;
  DeviceTile place(int owner, const Slice& slice, const Tile& tile, std::byte* base) const override;
  Status look(DeviceStream& stream) override;
  Result<bool> complains(Complaint& complaint) override;
  Status compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) override;
  Follows follows() const override { return Follows::as_expected; }
  Status expect(const DeviceArrivals& arrivals) override;
  Status follow(DeviceStream& stream, const DeviceParts& parts) override;

 private:
  Range rows_of(int source) const { return share_of(problem_.rows, ranks_, source); }
  std::uint64_t blocks() const;

  const GemmProblem& problem_;
  int rank_, ranks_;
  std::int64_t slice_rows_ = 1, tile_rows_ = 1;
  DeviceGround ground_;
  DeviceBytes sources_, progress_;
  GivenNumbers numbers_;
  // Of the run at hand: as it was given, and the call of its kernel.
  const float* given_ = nullptr;
  DeviceGather call_;
};

}  // namespace plait::fused
