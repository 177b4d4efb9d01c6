#include "fused/gemv/gemv.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plait::fused {
namespace {

// A worker's turn, in bytes of weights: long enough that what is between two of them does not count, short enough to
// even out workers and to look after slices that have come.
constexpr TurnLength worker_turn{.bytes = 128 * 1024, .least_blocks = 2};

}  // namespace

// ---- Making ----

Status Gemv::read(const GemvArguments& given, int, int) { return read_arguments(given, problem_); }

std::vector<Alike> Gemv::alike() const {
  return {{"rows", problem_.rows},
          {"columns", problem_.columns},
          {"slice=", static_cast<std::int64_t>(problem_.options.slice_bytes)}};
}

// Rows of the result that are the owner's. Slices are the same on all ranks; tiles are a rank's own affair.
Pane Gemv::pane_of(int owner, std::size_t bytes_of_slice, const TurnLength& turn) const {
  const Box box{share_of(problem_.rows, ranks(), owner), {0, 1}};
  const std::size_t turn_rows = turn.bytes / std::max<std::size_t>(problem_.row_bytes(), 1);
  const std::size_t tile_rows = std::max<std::size_t>(turn_rows / gemv_block_rows, turn.least_blocks) * gemv_block_rows;
  const std::size_t cell = problem_.cell_bytes();
  return cut(box, grain_of(box, {.cell_bytes = cell, .slice_bytes = bytes_of_slice, .tile_bytes = tile_rows * cell}));
}

// In the output, where a column follows the other.
Block Gemv::block_of(const Slice& slice) const {
  return {.offset = static_cast<std::uint64_t>(slice.box.rows.begin) * sizeof(float),
          .row_bytes = static_cast<std::uint64_t>(slice.box.rows.length()) * sizeof(float),
          .rows = static_cast<std::uint64_t>(problem_.columns)};
}

// By owner.
std::vector<Pane> Gemv::panes(const TurnLength& turn) const {
  const auto most_rows = static_cast<std::uint64_t>(share_of(problem_.rows, ranks(), 0).length());
  const std::size_t bytes_of_slice = slice_bytes_for(most_rows * problem_.cell_bytes());
  std::vector<Pane> made;
  for (int owner = 0; owner < ranks(); ++owner) made.push_back(pane_of(owner, bytes_of_slice, turn));
  return made;
}

Status Gemv::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  const std::uint64_t pitch = static_cast<std::uint64_t>(problem_.rows) * sizeof(float);
  exchange.output = {
      .data = problem_.output, .pitch = pitch, .bytes = pitch * static_cast<std::uint64_t>(problem_.columns)};
  run.panes = panes(worker_turn);
  run.keeps = true;
  run.chains = 1;
  sum_.lay_out({.rank = rank(),
                .to = RankSum::To::all,
                .panes = &run.panes,
                .block_of = [this](int, const Slice& slice) { return block_of(slice); }},
               exchange);
  return {};
}

void Gemv::visit_data(DataVisitor& visit) {
  const auto rows = static_cast<std::uint64_t>(problem_.rows);
  visit(problem_.weights, rows * problem_.row_bytes(), DataWay::given, bytes_of(problem_.type));
  if (problem_.type == RowType::i8) visit(problem_.scales, rows * sizeof(float), DataWay::given);
  visit(problem_.output, rows * problem_.cell_bytes(), DataWay::taken, sizeof(float));
}

DeviceWork* Gemv::device_work() {
  device_ = std::make_unique<GemvOnDevice>(problem_, rank(), ranks());
  return device_.get();
}

void Gemv::lay_out_on_devices(DeviceRunRequest& request) {
  request.panes = panes(device_->turn());
  request.output = problem_.output;
  request.output_bytes = static_cast<std::uint64_t>(problem_.rows) * problem_.cell_bytes();
  request.parts_to = PartsTo::all;
  request.part_bytes = device_->part_bytes(rank());
  const auto own_slices = static_cast<std::uint32_t>(request.panes[static_cast<std::size_t>(rank())].slices.size());
  for (int other = 0; other < ranks(); ++other) {
    request.coming.push_back(own_slices);
    request.part_bytes_of.push_back(device_->part_bytes(other));
  }
}

void Gemv::prepare() {
  kernel_ = gemv_kernel(problem_.type);
  sum_.prepare(run().exchange(), run().workers());
}

// ---- A run ----

Status Gemv::start(const float* x) {
  if (Status status = may_begin(); !status.ok()) return status;
  if (on_devices()) {
    device_->take(x);
    return begin_on_devices();
  }
  Complaint complaint;
  x_ = brought().bring(x, problem_.depth * problem_.columns);
  const bool bad = complains(problem_, x_, complaint);
  return begin(bad ? &complaint : nullptr);
}

void Gemv::compute(const TilePlace& place) noexcept {
  const Range& rows = place.tile.box.rows;
  kernel_(
      {.weights = problem_.weights + static_cast<std::size_t>(rows.begin) * problem_.row_bytes(),
       .scales = problem_.scales != nullptr ? problem_.scales + rows.begin : nullptr,
       .rows = rows.length(),
       .depth = problem_.depth,
       .inputs = x_,
       .columns = problem_.columns,
       .results = place.target.rows + static_cast<std::size_t>(rows.begin - place.slice.box.rows.begin) * sizeof(float),
       .pitch = static_cast<std::ptrdiff_t>(place.target.pitch)});
}

void Gemv::follow(const Task& task, int worker) noexcept { sum_.add(task.number, worker); }

}  // namespace plait::fused
