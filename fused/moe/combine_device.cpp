#include "fused/moe/combine_device.h"

#include <algorithm>
#include <limits>

namespace plait::fused {
namespace {

// Tokens of a tile of sums.
constexpr std::int64_t sum_tokens = 16;

}  // namespace

// ---- Making ----

std::uint64_t CombineOnDevice::most_tiles() const {
  if (problem().experts() == 0) return 0;
  const Pieces::Shape shape{.experts = problem().experts(), .capacity = problem().capacity, .piece_rows = block.rows};
  return static_cast<std::uint64_t>(Pieces::most(shape) * parts_.ranks) *
         static_cast<std::uint64_t>(blocks_of(problem().columns, block.columns));
}

Status CombineOnDevice::prepare(const DeviceGround& ground) {
  ground_ = ground;
  Result<DeviceBytes> matrices =
      DeviceBytes::copy_of(ground, problem().weights.data(), problem().weights.size() * sizeof(float*));
  if (!matrices.ok()) return matrices.status();
  matrices_ = std::move(*matrices);
  if (problem().tokens == 0) return {};
  if (Status status = bags_.reserve(ground, bags_bytes()).status(); !status.ok()) return status;
  return lay_out_sums();
}

Status CombineOnDevice::lay_out_sums() {
  std::vector<DeviceTile> tiles;
  for (std::int64_t token = 0; token < problem().tokens; token += sum_tokens)
    tiles.push_back(
        {.target = reinterpret_cast<std::byte*>(problem().output) + static_cast<std::uint64_t>(token) * pitch(),
         .pitch = pitch(),
         .row = token,
         .rows = static_cast<std::int32_t>(std::min(sum_tokens, problem().tokens - token)),
         .columns = 1});
  sum_tile_count_ = static_cast<std::uint32_t>(tiles.size());
  const std::vector<DeviceSlice> slices{{.tiles = sum_tile_count_}};
  const std::vector<std::uint32_t> counters(tile_counters + slices.size());
  Status status = sum_tiles_.take_list(ground_, tiles);
  if (status.ok()) status = sum_slices_.take_list(ground_, slices);
  return status.ok() ? sum_counters_.take_list(ground_, counters) : status;
}

std::uint64_t CombineOnDevice::bags_bytes() const {
  const auto tokens = static_cast<std::uint64_t>(problem().tokens),
             entries = static_cast<std::uint64_t>(problem().entries());
  return sizeof(DeviceTable) + (tokens + 1 + entries) * sizeof(std::int64_t) + entries * sizeof(float);
}

CombineOnDevice::Bags CombineOnDevice::bags() const {
  auto* table = reinterpret_cast<DeviceTable*>(bags_.data());
  auto* offsets = reinterpret_cast<std::int64_t*>(table + 1);
  std::int64_t* indices = offsets + problem().tokens + 1;
  return {table, offsets, indices, reinterpret_cast<float*>(indices + problem().entries())};
}

// ---- A run ----

Status CombineOnDevice::look(DeviceStream& stream) {
  if (!given_.status.ok() || given_.is_wrong || problem().experts() == 0) return given_.status;
  const Result<const float*> x =
      numbers_.bring(ground_, stream, given_.x, parts_.ranks * problem().capacity * problem().depth);
  if (x.ok()) x_ = *x;
  return x.status();
}

Result<bool> CombineOnDevice::complains(Complaint& complaint) {
  if (given_.is_wrong) complaint = given_.complaint;
  return given_.is_wrong;
}

// For each owner all rows in the first columns, then in the next ones.
void CombineOnDevice::cut(const DeviceOwners& owners, std::vector<DeviceTile>& tiles) const {
  const std::int64_t column_blocks = blocks_of(problem().columns, block.columns);
  for (std::size_t at = 0; at < owners.order.size(); ++at) {
    const auto owner = static_cast<std::size_t>(owners.order[at]);
    for (std::int64_t number = 0; number < column_blocks; ++number) {
      const Range columns = elements_of({number, number + 1}, {0, problem().columns}, block.columns);
      for (const auto& [expert, rows] : parts_.pieces[owner].all())
        tiles.push_back({.target = owners.bases[owner] + static_cast<std::uint64_t>(rows.begin) * pitch() +
                                   static_cast<std::uint64_t>(columns.begin) * sizeof(float),
                         .pitch = pitch(),
                         .row = owners.order[at] * problem().capacity + rows.begin,
                         .column = columns.begin,
                         .rows = static_cast<std::int32_t>(rows.length()),
                         .columns = static_cast<std::int32_t>(columns.length()),
                         .slice = static_cast<std::uint32_t>(at),
                         .matrix = static_cast<std::uint32_t>(expert)});
    }
  }
}

Status CombineOnDevice::compute(DeviceStream& stream, const DeviceTiles& tiles, bool /*aligned*/) {
  return stream.multiply(DeviceMatrices{.tiles = tiles,
                                        .inputs = x_,
                                        .weights = reinterpret_cast<const float* const*>(matrices_.data()),
                                        .depth = problem().depth,
                                        .columns = problem().columns});
}

// The rows of a token's choices, in their order; those that are dropped are none.
void CombineOnDevice::fill_bags() {
  const Bags to = bags();
  std::int64_t count = 0;
  for (std::int64_t token = 0; token < problem().tokens; ++token) {
    to.offsets[token] = count;
    for (std::int64_t entry = token * problem().choices; entry < (token + 1) * problem().choices; ++entry) {
      const Routing::Place place = parts_.routing.place(entry);
      if (place.owner == Routing::dropped) continue;
      to.indices[count] = place.owner * problem().capacity + place.row;
      to.weights[count++] = given_.weights[entry];
    }
  }
  to.offsets[problem().tokens] = count;
}

Status CombineOnDevice::follow(DeviceStream& stream, const DeviceParts& parts) {
  fill_bags();
  const Bags from = bags();
  *from.table = {.rows = parts.parts.front(), .count = parts_.ranks * problem().capacity};
  return stream.pool({.tiles = {.tiles = reinterpret_cast<const DeviceTile*>(sum_tiles_.data()),
                                .slices = reinterpret_cast<const DeviceSlice*>(sum_slices_.data()),
                                .counters = reinterpret_cast<std::uint32_t*>(sum_counters_.data()),
                                .count = sum_tile_count_},
                      .tables = from.table,
                      .indices = from.indices,
                      .offsets = from.offsets,
                      .weights = from.weights,
                      .batch = problem().tokens,
                      .columns = problem().columns,
                      .type = DeviceRows::f32,
                      .vectors = pitch() % vector_bytes == 0 && begins_a_vector(problem().output) ? 1u : 0u});
}

}  // namespace plait::fused
