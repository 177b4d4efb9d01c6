// Embedding pooling on a device (tl::DevicePooling): the bags of this rank's tables, tile by tile into the outputs of
// the ranks that own the samples.
#pragma once

#include <vector>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/device/device_run.h"
#include "fused/device/given_data.h"
#include "fused/embedding/arguments.h"
#include "fused/embedding/embedding_layout.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

class EmbeddingOnDevice final : public DeviceWork {
 public:
  // Both stay.
  EmbeddingOnDevice(const EmbeddingProblem& problem, const EmbeddingLayout& layout)
      : problem_(problem), layout_(layout) {}

  // What the next run looks up.
  void take(const Lookup& lookup);

  Status prepare(const DeviceGround& ground) override;
  DeviceTile place(int owner, const Slice& slice, const Tile& tile, std::byte* base) const override;
  Status look(DeviceStream& stream) override;
  Result<bool> complains(Complaint& complaint) override;
  Status compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) override;

 private:
  bool are_vectors() const;
  std::uint32_t& wrong() const { return *reinterpret_cast<std::uint32_t*>(wrong_.data()); }

  const EmbeddingProblem& problem_;
  const EmbeddingLayout& layout_;
  DeviceGround ground_;
  DeviceBytes tables_;
  PinnedBytes wrong_;
  GivenData given_;
  Lookup program_, lookup_;  // of the run at hand: as it was given, and as the device reads it
};

}  // namespace plait::fused
