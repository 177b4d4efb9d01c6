// Rows times vectors on a device (tl::DeviceProducts): this rank's part of every row, tile by tile into the memory that
// the rows' owners have for it; and the sums of the parts of this rank's own rows, into all outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/device/device_run.h"
#include "fused/device/given_data.h"
#include "fused/gemv/gemv_arguments.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

// What a tile has of the weights: so many bytes, and so many blocks of a kernel's rows at least.
struct TurnLength {
  std::size_t bytes, least_blocks;
};

class GemvOnDevice final : public DeviceWork {
 public:
  // `problem` stays. Throws where memory is short.
  GemvOnDevice(const GemvProblem& problem, int rank, int ranks)
      : problem_(problem), rank_(rank), ranks_(ranks), places_(ranks) {}

  // What the next run multiplies.
  void take(const float* x) { given_ = x; }
  // Short enough that all workgroups of a device have tiles, long enough that their ends do not count.
  TurnLength turn() const;
  // Of one rank's part of what is the owner's: a column after the other, each from a multiple of vector_bytes on.
  std::uint64_t part_bytes(int owner) const { return static_cast<std::uint64_t>(problem_.columns) * part_pitch(owner); }

  Status prepare(const DeviceGround& ground) override;
  DeviceTile place(int owner, const Slice& slice, const Tile& tile, std::byte* base) const override;
  Status look(DeviceStream& stream) override;
  Result<bool> complains(Complaint& complaint) override { return fused::complains(problem_, given_, complaint); }
  Status compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) override;
  Follows follows() const override { return Follows::in_shares; }
  std::uint64_t output_pitch() const override { return static_cast<std::uint64_t>(problem_.rows) * sizeof(float); }
  Status follow(DeviceStream& stream, const DeviceParts& parts) override;

 private:
  Range rows_of(int owner) const { return share_of(problem_.rows, ranks_, owner); }
  std::uint64_t part_pitch(int owner) const;
  bool are_vectors() const;

  const GemvProblem& problem_;
  int rank_, ranks_;
  DeviceGround ground_;
  GivenNumbers numbers_;
  // Of the run at hand: as it was given, and as the device reads it.
  const float *given_ = nullptr, *x_ = nullptr;
  RankPlaces places_;
};

}  // namespace plait::fused
