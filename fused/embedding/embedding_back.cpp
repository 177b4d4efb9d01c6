#include "fused/embedding/embedding_back.h"

#include <algorithm>
#include <cstring>

namespace plait::fused {
namespace {

// Where there are fewer tables, their columns are shared out: so many chains a worker even out what comes when, and no
// chain has less than two lines of a row.
constexpr std::int64_t chains_a_worker = 2, least_chain_columns = 32;

// Of a pane's slices, which are kept where they come to, packed.
Blocks kept_blocks(const Pane& pane, std::uint64_t cell_bytes) {
  Blocks blocks;
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices)
    blocks.push_back({.offset = 0,
                      .row_bytes = static_cast<std::uint64_t>(slice.box.columns.length()) * cell_bytes,
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length()),
                      .kept = true});
  return blocks;
}

}  // namespace

// ---- Making ----

Status EmbeddingBack::read(const EmbeddingArguments& given, int ranks, int rank) {
  return read_arguments(given, ranks, rank, problem_);
}

// What is this rank's own stays where it is.
Status EmbeddingBack::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  layout_.place(run.node_of, costs());
  const int rank = layout_.rank();
  additions_.resize(problem_.tables.size());
  for (int other = 0; other < layout_.ranks(); ++other) {
    run.panes.push_back(other == rank ? Pane() : layout_.pane_of({.of_tables = other, .of_samples = rank}));
    exchange.outgoing.push_back(kept_blocks(run.panes.back(), layout_.cell_bytes()));
    const Pane coming = other == rank ? Pane() : layout_.pane_of({.of_tables = rank, .of_samples = other});
    exchange.incoming.push_back(kept_blocks(coming, layout_.cell_bytes()));
  }
  for (const int source : arrival_order(layout_.node_of(), rank))
    line_up_additions(source, layout_.pane_of({.of_tables = rank, .of_samples = source}));
  cut_tables(run.worker_count());
  run.keeps = true;
  run.chains = static_cast<int>(parts_.size());
  run.tiles_first = true;
  run.serial = true;
  return {};
}

// A column's tiles are in the order of their rows, as slices are.
void EmbeddingBack::line_up_additions(int source, const Pane& pane) {
  const std::uint64_t cell = layout_.cell_bytes();
  const Range share = layout_.samples_of(source);
  const bool own = source == layout_.rank();
  for (const Tile& tile : pane.tiles) {
    const auto& [rows, columns] = tile.box;
    const Box& slice = pane.slices[tile.slice].box;
    Addition addition{.source = source,
                      .slice = tile.slice,
                      .samples = {share.begin + rows.begin, share.begin + rows.end},
                      .end = share.end};
    addition.pitch = own ? layout_.pitch() : static_cast<std::uint64_t>(slice.columns.length()) * cell;
    addition.offset = own ? layout_.offset_of(tile.box, {.of_tables = source, .of_samples = source})
                          : static_cast<std::uint64_t>(rows.begin - slice.rows.begin) * addition.pitch +
                                static_cast<std::uint64_t>(columns.begin - slice.columns.begin) * cell;
    additions_[static_cast<std::size_t>(columns.begin)].push_back(addition);
  }
}

void EmbeddingBack::cut_tables(int workers) {
  const auto tables = static_cast<std::int64_t>(problem_.tables.size());
  if (tables == 0) return;
  const std::int64_t wanted = workers == 1 ? tables : chains_a_worker * workers;
  const std::int64_t most = std::max<std::int64_t>(problem_.dim / least_chain_columns, 1);
  const auto parts = static_cast<int>(std::clamp<std::int64_t>((wanted + tables - 1) / tables, 1, most));
  for (std::size_t table = 0; table < problem_.tables.size(); ++table)
    for (int part = 0; part < parts; ++part) parts_.push_back({table, share_of(problem_.dim, parts, part)});
}

// ---- A run ----

Status EmbeddingBack::start(const Lookup& lookup, float factor) {
  if (Status status = may_begin(); !status.ok()) return status;
  Complaint complaint;
  lookup_ = brought_lookup(problem_, lookup, brought());
  const bool bad = complains(problem_, lookup_, complaint);
  factor_ = factor;
  return begin(bad ? &complaint : nullptr);
}

// A tile's gradients on their way.
void EmbeddingBack::compute(const TilePlace& place) noexcept {
  const auto& [rows, columns] = place.tile.box;
  const Box& slice = place.slice.box;
  const std::uint64_t cell = layout_.cell_bytes();
  const std::byte* from =
      problem_.gradients + layout_.offset_of(place.tile.box, {.of_tables = place.owner, .of_samples = layout_.rank()});
  std::byte* to = place.target.rows + static_cast<std::uint64_t>(rows.begin - slice.rows.begin) * place.target.pitch +
                  static_cast<std::uint64_t>(columns.begin - slice.columns.begin) * cell;
  for (std::int64_t row = rows.begin; row < rows.end; ++row, from += layout_.pitch(), to += place.target.pitch)
    std::memcpy(to, from, cell);
}

std::int64_t EmbeddingBack::tasks_of(int chain) const noexcept {
  return static_cast<std::int64_t>(additions_[parts_[static_cast<std::size_t>(chain)].table].size());
}

bool EmbeddingBack::is_ready(const Task& task) const noexcept {
  const Addition& next = addition(task);
  return next.source == layout_.rank() || run().exchange().has_come(next.source, next.slice);
}

void EmbeddingBack::follow(const Task& task, int /*worker*/) noexcept {
  const Addition& next = addition(task);
  const Part& part = parts_[static_cast<std::size_t>(task.chain)];
  const bool own = next.source == layout_.rank();
  const std::byte* gradients = own ? problem_.gradients : run().exchange().kept(next.source, next.slice);
  const auto first = static_cast<std::size_t>(part.columns.begin);
  const std::int64_t* offsets = lookup_.offsets + static_cast<std::int64_t>(part.table) * problem_.batch;
  kernel_({.table = problem_.tables[part.table].target + first * bytes_of(problem_.type),
           .row_elements = problem_.dim,
           .columns = part.columns.length(),
           .indices = lookup_.indices,
           .weights = lookup_.weights,
           .offsets = offsets + next.samples.begin,
           .bags = next.samples.length(),
           .next_end = offsets[next.end],
           .gradients = gradients + next.offset + first * sizeof(float),
           .pitch = static_cast<std::ptrdiff_t>(next.pitch),
           .factor = factor_,
           .mean = problem_.mean});
}

}  // namespace plait::fused
