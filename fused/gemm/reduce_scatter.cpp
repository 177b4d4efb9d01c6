#include "fused/gemm/reduce_scatter.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace plait::fused {

// ---- Making ----

Status GemmReduceScatter::read(const GemmArguments& given, int ranks, int rank) {
  GemmArguments needed = given;
  // A rank that owns no row needs no output.
  static float nothing = 0;
  if (given.rows > 0 && share_of(given.rows, ranks, rank).length() == 0 && given.output == nullptr)
    needed.output = &nothing;
  return read_arguments(needed, {.depth = 0, .columns = 1}, problem_);
}

std::vector<Alike> GemmReduceScatter::alike() const {
  return {{"rows", problem_.rows},
          {"columns", problem_.columns},
          {"slice=", static_cast<std::int64_t>(problem_.options.slice_bytes)}};
}

Range GemmReduceScatter::rows_of(int owner) const { return share_of(problem_.rows, ranks(), owner); }

Pane GemmReduceScatter::pane_of(int owner, std::size_t bytes_of_slice) const {
  const std::int64_t rows = rows_of(owner).length();
  if (rows == 0) return {};
  const Box box{{0, blocks_of(rows, block_.rows)}, {0, blocks_of(problem_.columns, block_.columns)}};
  const auto cell = static_cast<std::size_t>(block_.rows * block_.columns) * sizeof(float);
  return cut(box, grain_of(box, {.cell_bytes = cell, .slice_bytes = bytes_of_slice, .tile_bytes = cell}));
}

Box GemmReduceScatter::elements_in(int owner, const Box& blocks) const {
  return {elements_of(blocks.rows, rows_of(owner), block_.rows),
          elements_of(blocks.columns, {0, problem_.columns}, block_.columns)};
}

Block GemmReduceScatter::block_of(int owner, const Slice& slice) const {
  const auto [rows, columns] = elements_in(owner, slice.box);
  return {.offset = static_cast<std::uint64_t>(rows.begin - rows_of(owner).begin) * problem_.output_pitch() +
                    static_cast<std::uint64_t>(columns.begin) * sizeof(float),
          .row_bytes = static_cast<std::uint64_t>(columns.length()) * sizeof(float),
          .rows = static_cast<std::uint64_t>(rows.length())};
}

// By owner. Of blocks as they are.
std::vector<Pane> GemmReduceScatter::panes() const {
  const std::size_t slice = slice_bytes_for(static_cast<std::uint64_t>(rows_of(0).length()) * problem_.output_pitch());
  std::vector<Pane> made;
  for (int owner = 0; owner < ranks(); ++owner) made.push_back(pane_of(owner, slice));
  return made;
}

Status GemmReduceScatter::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  const auto own_rows = static_cast<std::uint64_t>(rows_of(rank()).length());
  exchange.output = {.data = reinterpret_cast<std::byte*>(problem_.output),
                     .pitch = problem_.output_pitch(),
                     .bytes = own_rows * problem_.output_pitch()};
  const std::int64_t most_rows = rows_of(0).length();
  const std::size_t asked = problem_.options.slice_bytes;
  block_ = block_shape({.rows = most_rows,
                        .columns = problem_.columns,
                        .enough = enough_blocks(),
                        .most_bytes = asked != 0 ? asked : std::numeric_limits<std::size_t>::max()});
  run.panes = panes();
  run.keeps = true;
  run.chains = 1;
  sum_.lay_out({.rank = rank(),
                .to = RankSum::To::owner,
                .panes = &run.panes,
                .block_of = [this](int owner, const Slice& one) { return block_of(owner, one); }},
               exchange);
  return {};
}

void GemmReduceScatter::visit_data(DataVisitor& visit) {
  const auto own_rows = static_cast<std::uint64_t>(rows_of(rank()).length());
  visit(problem_.weights, problem_.weights_bytes(), DataWay::given);
  visit(problem_.output, own_rows * problem_.output_pitch(), DataWay::taken);
}

DeviceWork* GemmReduceScatter::device_work() {
  device_ = std::make_unique<GemmOnDevice>(problem_, rank(), ranks());
  return device_.get();
}

void GemmReduceScatter::lay_out_on_devices(DeviceRunRequest& request) {
  block_ = GemmOnDevice::block;
  request.panes = panes();
  request.output = reinterpret_cast<std::byte*>(rows_of(rank()).length() > 0 ? problem_.output : nullptr);
  request.parts_to = PartsTo::owner;
  request.part_bytes = device_->part_bytes(rank());
  const auto own_slices = static_cast<std::uint32_t>(request.panes[static_cast<std::size_t>(rank())].slices.size());
  for (int other = 0; other < ranks(); ++other) {
    request.coming.push_back(own_slices);
    request.part_bytes_of.push_back(device_->part_bytes(other));
  }
}

void GemmReduceScatter::prepare() {
  MatrixPlan::prepare();
  sum_.prepare(run().exchange(), run().workers());
}

// ---- A run ----

Status GemmReduceScatter::start(const float* x) {
  if (Status status = may_begin(); !status.ok()) return status;
  if (on_devices()) {
    device_->take(x);
    return begin_on_devices();
  }
  const Complaint complaint;
  x_ = brought().bring(x, problem_.rows * problem_.depth);
  const bool bad = x_ == nullptr && problem_.depth > 0;
  return begin(bad ? &complaint : nullptr);
}

void GemmReduceScatter::compute(const TilePlace& place) noexcept {
  const auto [rows, columns] = elements_in(place.owner, place.tile.box);
  const Box slice = elements_in(place.owner, place.slice.box);
  std::byte* to = place.target.rows + static_cast<std::uint64_t>(rows.begin - slice.rows.begin) * place.target.pitch +
                  static_cast<std::size_t>(columns.begin - slice.columns.begin) * sizeof(float);
  multiply({.a = problem_.depth > 0 ? x_ + rows.begin * problem_.depth : nullptr,
            .a_pitch = problem_.depth,
            .b = problem_.depth > 0 ? problem_.weights + columns.begin : nullptr,
            .b_pitch = problem_.columns,
            .c = reinterpret_cast<float*>(to),
            .c_pitch = static_cast<std::int64_t>(place.target.pitch / sizeof(float)),
            .rows = rows.length(),
            .columns = columns.length(),
            .depth = problem_.depth},
           place.worker);
}

}  // namespace plait::fused
