// A product of matrices on a device (tl::DeviceMatrices) whose parts are added by the owners of their rows: this rank's
// part of all rows, tile by tile into the memory that the owners have for it; and the sum of the parts of its own rows.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/device/device_run.h"
#include "fused/device/given_data.h"
#include "fused/gemm/gemm_arguments.h"
#include "fused/layer.h"
#include "fused/tiles/blocks.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

class GemmOnDevice final : public DeviceWork {
 public:
  // What a kernel's workgroup computes at once.
  static constexpr BlockShape block{.rows = device_block_side, .columns = device_block_side};

  // `problem` stays. Throws where memory is short.
  GemmOnDevice(const GemmProblem& problem, int rank, int ranks)
      : problem_(problem), rank_(rank), ranks_(ranks), places_(ranks) {}

  // What the next run multiplies.
  void take(const float* x) { given_ = x; }
  // Of one rank's part of what is the owner's: as it lies in the owner's output.
  std::uint64_t part_bytes(int owner) const {
    return static_cast<std::uint64_t>(rows_of(owner).length()) * problem_.output_pitch();
  }

  Status prepare(const DeviceGround& ground) override;
  DeviceTile place(int owner, const Slice& slice, const Tile& tile, std::byte* base) const override;
  Status look(DeviceStream& stream) override;
  Result<bool> complains(Complaint& complaint) override;
  Status compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) override;
  Status follow(DeviceStream& stream, const DeviceParts& parts) override;

 private:
  Range rows_of(int owner) const { return share_of(problem_.rows, ranks_, owner); }

  const GemmProblem& problem_;
  int rank_, ranks_;
  DeviceGround ground_;
  DeviceBytes weights_;  // where they are
  GivenNumbers numbers_;
  // Of the run at hand: as it was given, and as the device reads it.
  const float *given_ = nullptr, *x_ = nullptr;
  RankPlaces places_;
};

}  // namespace plait::fused
