#include "fused/gemv/gemv_device.h"

#include <algorithm>

namespace plait::fused {
namespace {

static_assert(static_cast<int>(RowType::f32) == static_cast<int>(DeviceRows::f32) &&
              static_cast<int>(RowType::bf16) == static_cast<int>(DeviceRows::bf16) &&
              static_cast<int>(RowType::i8) == static_cast<int>(DeviceRows::i8));
static_assert(most_columns <= most_device_vectors);

// A workgroup reads the least in some microseconds where all read, and ends a tile in about one. Not measured.
constexpr std::size_t least_turn_bytes = 16 * 1024, most_turn_bytes = 128 * 1024;

}  // namespace

Status GemvOnDevice::prepare(const DeviceGround& ground) {
  ground_ = ground;
  return RankPlaces::can_add(ground, ranks_);
}

TurnLength GemvOnDevice::turn() const {
  const std::size_t bytes = static_cast<std::size_t>(problem_.rows) * problem_.row_bytes();
  return {.bytes = std::clamp(bytes / device_workgroups, least_turn_bytes, most_turn_bytes), .least_blocks = 1};
}

std::uint64_t GemvOnDevice::part_pitch(int owner) const {
  const auto bytes = static_cast<std::uint64_t>(rows_of(owner).length()) * sizeof(float);
  return (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
}

DeviceTile GemvOnDevice::place(int owner, const Slice&, const Tile& tile, std::byte* base) const {
  const Range& rows = tile.box.rows;
  return {.target = base + static_cast<std::uint64_t>(rows.begin - rows_of(owner).begin) * sizeof(float),
          .pitch = part_pitch(owner),
          .row = rows.begin,
          .rows = static_cast<std::int32_t>(rows.length()),
          .columns = problem_.columns};
}

bool GemvOnDevice::are_vectors() const {
  const std::size_t x_bytes = static_cast<std::size_t>(problem_.depth) * sizeof(float);
  return problem_.row_bytes() % vector_bytes == 0 && x_bytes % vector_bytes == 0 && begins_a_vector(problem_.weights) &&
         begins_a_vector(x_);
}

// ---- A run ----

Status GemvOnDevice::look(DeviceStream& stream) {
  const Result<const float*> x = numbers_.bring(ground_, stream, given_, problem_.depth * problem_.columns);
  if (x.ok()) x_ = *x;
  return x.status();
}

// Numbers go one by one, wherever their places begin.
Status GemvOnDevice::compute(DeviceStream& stream, const DeviceTiles& tiles, bool /*aligned*/) {
  return stream.multiply(DeviceProducts{.tiles = tiles,
                                        .weights = problem_.weights,
                                        .scales = problem_.scales,
                                        .inputs = x_,
                                        .depth = problem_.depth,
                                        .columns = static_cast<std::uint32_t>(problem_.columns),
                                        .type = static_cast<DeviceRows>(problem_.type),
                                        .vectors = are_vectors() ? 1u : 0u});
}

// Column by column: a rank's own rows of a column follow each other in every output.
Status GemvOnDevice::follow(DeviceStream& stream, const DeviceParts& parts) {
  const Range rows = rows_of(rank_);
  const std::uint64_t pitch = static_cast<std::uint64_t>(problem_.rows) * sizeof(float);
  const std::uint64_t first = static_cast<std::uint64_t>(rows.begin) * sizeof(float);
  Status status;
  for (std::uint64_t column = 0; column < static_cast<std::uint64_t>(problem_.columns) && status.ok(); ++column)
    status = stream.reduce(places_.sum_of(
        parts, {column * part_pitch(rank_), column * pitch + first, static_cast<std::uint64_t>(rows.length())}));
  return status;
}

}  // namespace plait::fused
