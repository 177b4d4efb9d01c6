#include "fused/gemm/gemm_device.h"

#include <vector>

namespace plait::fused {

Status GemmOnDevice::prepare(const DeviceGround& ground) {
  ground_ = ground;
  if (Status status = weights_.take_list(ground, std::vector{problem_.weights}); !status.ok()) return status;
  return RankPlaces::can_add(ground, ranks_);
}

DeviceTile GemmOnDevice::place(int owner, const Slice&, const Tile& tile, std::byte* base) const {
  const Range own = rows_of(owner);
  const Range rows = elements_of(tile.box.rows, own, block.rows);
  const Range columns = elements_of(tile.box.columns, {0, problem_.columns}, block.columns);
  return {.target = base + static_cast<std::uint64_t>(rows.begin - own.begin) * problem_.output_pitch() +
                    static_cast<std::uint64_t>(columns.begin) * sizeof(float),
          .pitch = problem_.output_pitch(),
          .row = rows.begin,
          .column = columns.begin,
          .rows = static_cast<std::int32_t>(rows.length()),
          .columns = static_cast<std::int32_t>(columns.length())};
}

// ---- A run ----

Status GemmOnDevice::look(DeviceStream& stream) {
  const Result<const float*> x = numbers_.bring(ground_, stream, given_, problem_.rows * problem_.depth);
  if (x.ok()) x_ = *x;
  return x.status();
}

Result<bool> GemmOnDevice::complains(Complaint& complaint) {
  complaint = {};
  return given_ == nullptr && problem_.depth > 0;
}

Status GemmOnDevice::compute(DeviceStream& stream, const DeviceTiles& tiles, bool /*aligned*/) {
  return stream.multiply(DeviceMatrices{.tiles = tiles,
                                        .inputs = x_,
                                        .weights = reinterpret_cast<const float* const*>(weights_.data()),
                                        .depth = problem_.depth,
                                        .columns = problem_.columns});
}

Status GemmOnDevice::follow(DeviceStream& stream, const DeviceParts& parts) {
  const std::uint64_t numbers = part_bytes(rank_) / sizeof(float);
  return stream.reduce(places_.sum_of(parts, {.in_part = 0, .in_output = 0, .count = numbers}));
}

}  // namespace plait::fused
