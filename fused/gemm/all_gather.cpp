#include "fused/gemm/all_gather.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace plait::fused {
// ---- Making ----

Status AllGatherGemm::read(const GemmArguments& given, int, int) {
  return read_arguments(given, {.depth = 1, .columns = 0}, problem_);
}

std::vector<Alike> AllGatherGemm::alike() const {
  return {{"rows", problem_.rows},
          {"depth", problem_.depth},
          {"slice=", static_cast<std::int64_t>(problem_.options.slice_bytes)}};
}

// A source's rows, cut for its way to any other.
Pane AllGatherGemm::pane_of(int source) const {
  const Box box{{0, rows_of(source).length()}, {0, 1}};
  return cut(box, {.slice_rows = slice_rows_, .slice_columns = 1, .tile_rows = slice_rows_});
}

Blocks AllGatherGemm::slices_of(int source) const {
  Blocks blocks;
  for (const Slice& slice : pane_of(source).slices)
    blocks.push_back({.offset = 0,
                      .row_bytes = problem_.input_pitch(),
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length()),
                      .kept = true});
  return blocks;
}

Status AllGatherGemm::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  const std::uint64_t own_bytes = static_cast<std::uint64_t>(rows_of(0).length()) * problem_.input_pitch();
  slice_rows_ = rows_without_gaps(static_cast<std::int64_t>(slice_bytes_for(own_bytes) / problem_.input_pitch()));
  block_ = block_shape({.rows = rows_of(0).length(), .columns = problem_.columns, .enough = enough_blocks()});
  for (int other = 0; other < ranks(); ++other) {
    const bool self = other == rank();
    run.panes.push_back(self ? Pane() : pane_of(rank()));
    exchange.outgoing.push_back(self ? Blocks() : slices_of(rank()));
    exchange.incoming.push_back(self ? Blocks() : slices_of(other));
  }
  line_up_sources(run);
  run.keeps = true;
  run.tiles_first = true;
  run.chains = ranks();
  return {};
}

void AllGatherGemm::line_up_sources(const TileRunRequest& run) {
  for (const int source : arrival_order(run.node_of, rank())) {
    const Range rows = rows_of(source);
    const bool any = rows.length() > 0 && problem_.columns > 0;
    sources_.push_back({.rank = source,
                        .rows = rows,
                        .row_blocks = any ? blocks_of(rows.length(), block_.rows) : 0,
                        .column_blocks = any ? blocks_of(problem_.columns, block_.columns) : 0});
  }
}

void AllGatherGemm::visit_data(DataVisitor& visit) {
  visit(problem_.weights, problem_.weights_bytes(), DataWay::given);
  visit(problem_.output, static_cast<std::uint64_t>(problem_.rows) * problem_.output_pitch(), DataWay::taken);
}

DeviceWork* AllGatherGemm::device_work() {
  device_ = std::make_unique<AllGatherOnDevice>(problem_, rank(), ranks());
  return device_.get();
}

void AllGatherGemm::lay_out_on_devices(DeviceRunRequest& request) {
  device_->cut_by(slice_bytes_for(device_->part_bytes()));
  request.parts_to = PartsTo::owner;
  request.has_own_part = false;
  request.part_bytes = device_->part_bytes();
  for (int other = 0; other < ranks(); ++other) {
    const bool self = other == rank();
    request.panes.push_back(self ? Pane() : device_->pane_of(rank()));
    request.coming.push_back(self ? 0 : static_cast<std::uint32_t>(device_->pane_of(other).slices.size()));
    request.part_bytes_of.push_back(device_->part_bytes());
  }
}

// ---- A run ----

Status AllGatherGemm::start(const float* x) {
  if (Status status = may_begin(); !status.ok()) return status;
  if (on_devices()) {
    device_->take(x);
    return begin_on_devices();
  }
  const Complaint complaint;
  x_ = brought().bring(x, rows_of(rank()).length() * problem_.depth);
  const bool bad = x_ == nullptr && rows_of(rank()).length() > 0;
  return begin(bad ? &complaint : nullptr);
}

// Its rows as they are.
void AllGatherGemm::compute(const TilePlace& place) noexcept {
  const Range& rows = place.tile.box.rows;
  std::memcpy(
      place.target.rows + static_cast<std::uint64_t>(rows.begin - place.slice.box.rows.begin) * place.target.pitch,
      x_ + rows.begin * problem_.depth, static_cast<std::size_t>(rows.length()) * problem_.input_pitch());
}

std::int64_t AllGatherGemm::tasks_of(int chain) const noexcept {
  const Source& source = sources_[static_cast<std::size_t>(chain)];
  return source.row_blocks * source.column_blocks;
}

// All blocks of the first rows, then those of the next ones.
Range AllGatherGemm::rows_in(const Source& source, const Task& task) const {
  const std::int64_t block = task.number / source.column_blocks;
  return elements_of({block, block + 1}, {0, source.rows.length()}, block_.rows);
}

bool AllGatherGemm::is_ready(const Task& task) const noexcept {
  const Source& source = source_of(task);
  return source.rank == rank() || have_come(source.rank, rows_in(source, task), slice_rows_);
}

void AllGatherGemm::follow(const Task& task, int worker) noexcept {
  const Source& source = source_of(task);
  const Range rows = rows_in(source, task);
  const std::int64_t block = task.number % source.column_blocks;
  const Range columns = elements_of({block, block + 1}, {0, problem_.columns}, block_.columns);
  const float* from =
      source.rank == rank() ? x_ : reinterpret_cast<const float*>(run().exchange().kept(source.rank, 0));
  multiply({.a = from + rows.begin * problem_.depth,
            .a_pitch = problem_.depth,
            .b = problem_.weights + columns.begin,
            .b_pitch = problem_.columns,
            .c = problem_.output + (source.rows.begin + rows.begin) * problem_.columns + columns.begin,
            .c_pitch = problem_.columns,
            .rows = rows.length(),
            .columns = columns.length(),
            .depth = problem_.depth},
           worker);
}

}  // namespace plait::fused
