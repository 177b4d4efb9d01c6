#include "fused/embedding/embedding.h"

namespace plait::fused {

// ---- Making ----

Status Embedding::read(const EmbeddingArguments& given, int ranks, int rank) {
  return read_arguments(given, ranks, rank, problem_);
}

Blocks Embedding::blocks_of(const Pane& pane, const EmbeddingLayout::Pair& pair) const {
  Blocks blocks;
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices)
    blocks.push_back({.offset = layout_.offset_of(slice.box, pair),
                      .row_bytes = static_cast<std::uint64_t>(slice.box.columns.length()) * layout_.cell_bytes(),
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length())});
  return blocks;
}

Status Embedding::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  layout_.place(run.node_of, costs());
  const int rank = layout_.rank();
  const std::uint64_t pitch = layout_.pitch();
  exchange.output = {.data = problem_.output, .pitch = pitch, .bytes = layout_.end_bytes()};
  for (int other = 0; other < layout_.ranks(); ++other) {
    const EmbeddingLayout::Pair out{.of_tables = rank, .of_samples = other}, in{.of_tables = other, .of_samples = rank};
    run.panes.push_back(layout_.pane_of(out));
    exchange.outgoing.push_back(blocks_of(run.panes.back(), out));
    exchange.incoming.push_back(other == rank ? Blocks() : blocks_of(layout_.pane_of(in), in));
  }
  return {};
}

DeviceWork* Embedding::device_work() {
  device_ = std::make_unique<EmbeddingOnDevice>(problem_, layout_);
  return device_.get();
}

void Embedding::lay_out_on_devices(DeviceRunRequest& request) {
  std::vector<int> nodes;
  for (int of = 0; of < ranks(); ++of) nodes.push_back(node_of(of));
  layout_.place(nodes, costs());
  request.output = layout_.end_bytes() > 0 ? problem_.output : nullptr;
  request.output_bytes = layout_.end_bytes();
  for (int other = 0; other < ranks(); ++other) {
    request.panes.push_back(layout_.pane_of({.of_tables = rank(), .of_samples = other}));
    const Pane coming = layout_.pane_of({.of_tables = other, .of_samples = rank()});
    request.coming.push_back(static_cast<std::uint32_t>(coming.slices.size()));
  }
}

// ---- A run ----

Status Embedding::start(const Lookup& lookup) {
  if (Status status = may_begin(); !status.ok()) return status;
  if (on_devices()) {
    device_->take(lookup);
    return begin_on_devices();
  }
  lookup_ = brought_lookup(problem_, lookup, brought());
  Complaint complaint;
  const bool bad = complains(problem_, lookup_, complaint);
  return begin(bad ? &complaint : nullptr);
}

void Embedding::compute(const TilePlace& place) noexcept {
  const auto& [rows, columns] = place.tile.box;
  const Box& slice = place.slice.box;
  const Table& table = problem_.tables[static_cast<std::size_t>(columns.begin)];
  const std::int64_t first_bag = layout_.samples_of(place.owner).begin + rows.begin;
  kernel_({.table = table.data,
           .scales = table.scales,
           .columns = problem_.dim,
           .indices = lookup_.indices,
           .weights = lookup_.weights,
           .offsets = lookup_.offsets + columns.begin * problem_.batch + first_bag,
           .bags = rows.length(),
           .next_end = lookup_.offsets[(columns.begin + 1) * problem_.batch],
           .sums = place.target.rows + static_cast<std::uint64_t>(rows.begin - slice.rows.begin) * place.target.pitch +
                   static_cast<std::size_t>(columns.begin - slice.columns.begin) * problem_.cell_bytes(),
           .pitch = static_cast<std::ptrdiff_t>(place.target.pitch),
           .mean = problem_.mean});
}

}  // namespace plait::fused
