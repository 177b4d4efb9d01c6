// Experts' products on a device (tl::DeviceMatrices): the results of this rank's experts, tile by tile into the memory
// that the ranks of the tokens have for them; and the weighted sums of each token's results, which are bags of rows of
// that memory (tl::DevicePooling).
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/device/device_run.h"
#include "fused/device/given_data.h"
#include "fused/layer.h"
#include "fused/moe/moe_arguments.h"
#include "fused/moe/pieces.h"
#include "fused/moe/routing.h"
#include "fused/tiles/blocks.h"

namespace plait::fused {

class CombineOnDevice final : public DeviceWork {
 public:
  // What a kernel's workgroup computes at once.
  static constexpr BlockShape block{.rows = device_block_side, .columns = device_block_side};

  // All stay. `pieces`: by rank, of its tokens' rows for this rank's experts, in the run at hand.
  struct Parts {
    const MoeProblem& problem;
    const Routing& routing;
    const std::vector<Pieces>& pieces;
    int ranks;
  };
  explicit CombineOnDevice(const Parts& parts) : parts_(parts) {}

  // What the next run is given: the experts' rows, which may lie anywhere; the processor's choices, routed already, and
  // weights; what was wrong with that, or kept it from coming here.
  struct Given {
    const float* x = nullptr;
    const float* weights = nullptr;
    bool is_wrong = false;
    Complaint complaint;
    Status status;
  };
  void take(const Given& given) { given_ = given; }
  // Of the results of one rank's experts for another's tokens.
  std::uint64_t part_bytes() const { return static_cast<std::uint64_t>(problem().capacity) * pitch(); }
  // Of a run at most.
  std::uint64_t most_tiles() const;

  Status prepare(const DeviceGround& ground) override;
  void cut(const DeviceOwners& owners, std::vector<DeviceTile>& tiles) const override;
  Status look(DeviceStream& stream) override;
  Result<bool> complains(Complaint& complaint) override;
  Status compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) override;
  Status follow(DeviceStream& stream, const DeviceParts& parts) override;

 private:
  // In pinned memory, which kernels read once: a token's results are a bag of rows.
  struct Bags {
    DeviceTable* table;
    std::int64_t *offsets, *indices;
    float* weights;
  };
  const MoeProblem& problem() const { return parts_.problem; }
  std::uint64_t pitch() const { return static_cast<std::uint64_t>(problem().columns) * sizeof(float); }
  std::uint64_t bags_bytes() const;
  Bags bags() const;
  void fill_bags();
  Status lay_out_sums();

  Parts parts_;
  DeviceGround ground_;
  DeviceBytes matrices_;  // by expert
  DeviceBytes sum_tiles_, sum_slices_, sum_counters_;
  std::uint32_t sum_tile_count_ = 0;
  PinnedBytes bags_;
  GivenNumbers numbers_;
  // Of the run at hand.
  Given given_;
  const float* x_ = nullptr;
};

}  // namespace plait::fused
