#include "fused/embedding/embedding_device.h"

#include <algorithm>
#include <cstdint>

namespace plait::fused {
namespace {

static_assert(static_cast<int>(RowType::f32) == static_cast<int>(DeviceRows::f32) &&
              static_cast<int>(RowType::bf16) == static_cast<int>(DeviceRows::bf16) &&
              static_cast<int>(RowType::i8) == static_cast<int>(DeviceRows::i8));

}  // namespace

Status EmbeddingOnDevice::prepare(const DeviceGround& ground) {
  ground_ = ground;
  std::vector<DeviceTable> tables;
  for (const Table& table : problem_.tables)
    tables.push_back({.rows = table.data, .scales = table.scales, .count = table.rows});
  Result<DeviceBytes> copy = DeviceBytes::copy_of(ground, tables.data(), tables.size() * sizeof(DeviceTable));
  if (!copy.ok()) return copy.status();
  tables_ = std::move(*copy);
  return wrong_.reserve(ground, sizeof(std::uint32_t)).status();
}

bool EmbeddingOnDevice::are_vectors() const {
  const std::size_t row_bytes = static_cast<std::size_t>(problem_.dim) * bytes_of(problem_.type);
  if (row_bytes % vector_bytes != 0) return false;
  return std::ranges::all_of(problem_.tables, [](const Table& table) { return begins_a_vector(table.data); });
}

DeviceTile EmbeddingOnDevice::place(int owner, const Slice&, const Tile& tile, std::byte* base) const {
  const auto& [rows, columns] = tile.box;
  return {.target = base + layout_.offset_of(tile.box, {.of_tables = layout_.rank(), .of_samples = owner}),
          .pitch = layout_.pitch(),
          .row = layout_.samples_of(owner).begin + rows.begin,
          .column = columns.begin,
          .rows = static_cast<std::int32_t>(rows.length()),
          .columns = 1};
}

// ---- A run ----

void EmbeddingOnDevice::take(const Lookup& lookup) {
  program_ = lookup;
  lookup_ = {};
  given_.begin();
}

Status EmbeddingOnDevice::look(DeviceStream& stream) {
  const auto tables = static_cast<std::int64_t>(problem_.tables.size());
  if (tables == 0) return {};
  lookup_ = {.indices = given_.bring(ground_, program_.indices, program_.count),
             .count = program_.count,
             .offsets = given_.bring(ground_, program_.offsets, tables * problem_.batch + 1),
             .weights = problem_.weighted ? given_.bring(ground_, program_.weights, program_.count) : nullptr};
  if (!given_.status().ok()) return given_.status();
  wrong() = 0;
  if (!problem_.options.checks || lookup_.offsets == nullptr || lookup_.indices == nullptr) return {};
  return stream.check({.tables = reinterpret_cast<const DeviceTable*>(tables_.data()),
                       .indices = lookup_.indices,
                       .offsets = lookup_.offsets,
                       .wrong = &wrong(),
                       .table_count = tables,
                       .batch = problem_.batch,
                       .count = lookup_.count});
}

// What is wrong the processor finds, where something is: in copies.
Result<bool> EmbeddingOnDevice::complains(Complaint& complaint) {
  const auto tables = static_cast<std::int64_t>(problem_.tables.size());
  if (tables == 0) return false;
  const bool lacks = program_.offsets == nullptr || (program_.count > 0 && program_.indices == nullptr) ||
                     (program_.count > 0 && problem_.weighted && program_.weights == nullptr);
  const bool unseen = problem_.options.checks && lookup_.indices == nullptr;
  if (!lacks && !unseen && wrong() == 0) return false;
  BroughtData brought;
  const Lookup seen = brought_lookup(problem_, program_, brought);
  if (!brought.status().ok()) return brought.status();
  return fused::complains(problem_, seen, complaint);
}

Status EmbeddingOnDevice::compute(DeviceStream& stream, const DeviceTiles& tiles, bool aligned) {
  return stream.pool({.tiles = tiles,
                      .tables = reinterpret_cast<const DeviceTable*>(tables_.data()),
                      .indices = lookup_.indices,
                      .offsets = lookup_.offsets,
                      .weights = lookup_.weights,
                      .batch = problem_.batch,
                      .columns = problem_.dim,
                      .type = static_cast<DeviceRows>(problem_.type),
                      .mean = problem_.mean ? 1u : 0u,
                      .vectors = aligned && are_vectors() ? 1u : 0u});
}

}  // namespace plait::fused
