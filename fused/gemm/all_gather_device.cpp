#include "fused/gemm/all_gather_device.h"

#include <algorithm>

namespace plait::fused {
namespace {

// A workgroup stores a tile in some microseconds. Not measured.
constexpr std::int64_t most_tile_bytes = 64 * 1024;

}  // namespace

// Slices end where blocks of the product do, as far as they are as long.
void AllGatherOnDevice::cut_by(std::size_t slice_bytes) {
  const auto pitch = static_cast<std::int64_t>(problem_.input_pitch());
  const std::int64_t rows = std::max<std::int64_t>(static_cast<std::int64_t>(slice_bytes) / pitch, 1);
  slice_rows_ = rows < device_block_side ? rows : rows / device_block_side * device_block_side;
  tile_rows_ = std::clamp<std::int64_t>(most_tile_bytes / pitch, 1, slice_rows_);
}

Pane AllGatherOnDevice::pane_of(int source) const {
  const Box box{{0, rows_of(source).length()}, {0, 1}};
  return fused::cut(box, {.slice_rows = slice_rows_, .slice_columns = 1, .tile_rows = tile_rows_});
}

std::uint64_t AllGatherOnDevice::part_bytes() const {
  const std::uint64_t bytes = static_cast<std::uint64_t>(rows_of(0).length()) * problem_.input_pitch();
  return (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
}

std::uint64_t AllGatherOnDevice::blocks() const {
  std::int64_t along = 0;
  for (int source = 0; source < ranks_; ++source) along += device_blocks_along(rows_of(source).length());
  return static_cast<std::uint64_t>(along * device_blocks_along(problem_.columns));
}

Status AllGatherOnDevice::prepare(const DeviceGround& ground) {
  constexpr std::uint64_t most_blocks = std::uint64_t{1} << 31;
  ground_ = ground;
  if (blocks() > most_blocks) return {Code::unsupported, "more blocks of a product than a device counts"};
  return {};
}

DeviceTile AllGatherOnDevice::place(int, const Slice&, const Tile& tile, std::byte* base) const {
  const Range& rows = tile.box.rows;
  return {.target = base + static_cast<std::uint64_t>(rows.begin) * problem_.input_pitch(),
          .pitch = problem_.input_pitch(),
          .row = rows.begin,
          .rows = static_cast<std::int32_t>(rows.length()),
          .columns = 1};
}

// In the order in which they are likely to come: all are of one node.
Status AllGatherOnDevice::expect(const DeviceArrivals& arrivals) {
  const std::vector<int> nodes(static_cast<std::size_t>(ranks_), 0);
  std::vector<DeviceSource> sources;
  for (const int source : arrival_order(nodes, rank_)) {
    const Range rows = rows_of(source);
    const auto at = static_cast<std::size_t>(source);
    const bool is_own = source == rank_;
    sources.push_back({.rows = is_own ? nullptr : reinterpret_cast<const float*>(arrivals.parts[at]),
                       .flags = is_own ? nullptr : arrivals.flags[at],
                       .first = rows.begin,
                       .count = rows.length()});
  }
  Status status = sources_.take_list(ground_, sources);
  if (status.ok()) status = progress_.take_list(ground_, std::vector<DeviceProgress>(sources.size()));
  call_ = {.tiles = {},
           .weights = problem_.weights,
           .output = problem_.output,
           .depth = problem_.depth,
           .columns = problem_.columns,
           .slice_rows = slice_rows_,
           .sources = reinterpret_cast<const DeviceSource*>(sources_.data()),
           .progress = reinterpret_cast<DeviceProgress*>(progress_.data()),
           .missed = arrivals.missed,
           .most_wait_ns = arrivals.most_wait_ns,
           .blocks = blocks(),
           .source_count = static_cast<std::uint32_t>(ranks_)};
  return status;
}

// ---- A run ----

Status AllGatherOnDevice::look(DeviceStream& stream) {
  const Result<const float*> x = numbers_.bring(ground_, stream, given_, rows_of(rank_).length() * problem_.depth);
  if (x.ok()) call_.inputs = *x;
  return x.status();
}

Result<bool> AllGatherOnDevice::complains(Complaint& complaint) {
  complaint = {};
  return given_ == nullptr && rows_of(rank_).length() > 0;
}

Status AllGatherOnDevice::compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) {
  call_.tiles = tiles;
  call_.vectors = aligned && begins_a_vector(call_.inputs) ? 1 : 0;
  return stream.multiply(call_);
}

// The kernel's counters say what is left.
Status AllGatherOnDevice::follow(DeviceStream& stream, const DeviceParts&) {
  call_.tiles.count = 0;
  return stream.multiply(call_);
}

}  // namespace plait::fused
