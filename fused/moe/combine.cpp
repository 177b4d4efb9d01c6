#include "fused/moe/combine.h"

#include <algorithm>
#include <array>
#include <limits>

namespace plait::fused {
namespace {

// Tokens of a task: long enough that what is between two of them does not count.
constexpr std::int64_t tokens_at_once = 64;

}  // namespace

// ---- Making ----

// A tile and a slice for each piece of rows and block of columns, column by column, for as many pieces as there may be.
Pane MoeCombine::pane(std::int64_t most) const {
  return cut({{0, most}, {0, column_blocks_}}, {.slice_rows = 1, .slice_columns = 1, .tile_rows = 1});
}

// The pieces of a block of columns lie one behind the other in one place: however they are cut, they have no more rows
// than the capacity.
Blocks MoeCombine::slices(std::int64_t most) const {
  Blocks blocks;
  for (const Slice& slice : pane(most).slices)
    blocks.push_back(
        {.offset = 0,
         .row_bytes = static_cast<std::uint64_t>(columns_in(slice.box.columns.begin).length()) * sizeof(float),
         .rows = static_cast<std::uint64_t>(problem_.capacity),
         .kept = true,
         .shares_place = slice.box.rows.begin > 0});
  return blocks;
}

Status MoeCombine::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
  const std::size_t asked = problem_.options.slice_bytes;
  block_ = block_shape({.rows = problem_.capacity,
                        .columns = problem_.columns,
                        .enough = enough_blocks(),
                        .most_bytes = asked != 0 ? asked : std::numeric_limits<std::size_t>::max()});
  column_blocks_ = blocks_of(problem_.columns, block_.columns);
  token_blocks_ = (problem_.tokens + tokens_at_once - 1) / tokens_at_once;
  lay_out_notes(exchange, block_.rows);
  pairs_.clear();
  for (int other = 0; other < ranks(); ++other) {
    pairs_.push_back(std::make_unique<Pair>());
    Pair& pair = *pairs_.back();
    pair.most_to = most_pieces(problem_.experts());
    pair.most_from = most_pieces(routing_.experts(other));
    pair.from = Pieces({.experts = routing_.experts(other), .capacity = problem_.capacity, .piece_rows = block_.rows});
    run.panes.push_back(pane(pair.most_to));
    exchange.outgoing.push_back(slices(pair.most_to));
    exchange.incoming.push_back(slices(pair.most_from));
    pair.rows_to.resize(exchange.outgoing.back().size());
    pair.rows_from.resize(exchange.incoming.back().size());
  }
  run.keeps = true;
  run.chains = 1;
  return {};
}

DeviceWork* MoeCombine::device_work() {
  device_ = std::make_unique<CombineOnDevice>(
      CombineOnDevice::Parts{.problem = problem_, .routing = routing_, .pieces = pieces(), .ranks = ranks()});
  return device_.get();
}

// To each rank one slice, whatever of its tokens there is.
void MoeCombine::lay_out_on_devices(DeviceRunRequest& request) {
  lay_out_notes(request.words, CombineOnDevice::block.rows);
  request.output = reinterpret_cast<std::byte*>(problem_.output);
  request.parts_to = PartsTo::owner;
  request.part_bytes = problem_.tokens > 0 ? device_->part_bytes() : 0;
  request.varies = true;
  request.most_tiles = device_->most_tiles();
  for (int other = 0; other < ranks(); ++other) {
    request.panes.emplace_back();
    if (problem_.experts() > 0) request.panes.back().slices.emplace_back();
    request.coming.push_back(routing_.experts(other) > 0 ? 1 : 0);
    request.part_bytes_of.push_back(device_->part_bytes());
  }
}

void MoeCombine::prepare() {
  MoePlan::prepare();
  sum_ = weighted_sum();
}

// ---- A run ----

Status MoeCombine::start(const Results& results) {
  if (Status status = may_begin(); !status.ok()) return status;
  const bool moves_rows = problem_.experts() > 0 && !on_devices();
  results_ = {.x = moves_rows ? brought().bring(results.x, ranks() * problem_.capacity * problem_.depth) : results.x,
              .experts = brought().bring(results.experts, problem_.entries()),
              .weights = brought().bring(results.weights, problem_.entries())};
  Complaint complaint;
  bool bad = true;
  if (results_.x == nullptr && problem_.experts() > 0)
    complaint = missing_list("x");
  else if (results_.weights == nullptr && problem_.tokens > 0)
    complaint = missing_list("weights");
  else
    bad = route(results_.experts, complaint);
  if (!on_devices()) return begin(bad ? &complaint : nullptr);
  device_->take({.x = results_.x,
                 .weights = results_.weights,
                 .is_wrong = bad,
                 .complaint = complaint,
                 .status = brought().status()});
  return begin_on_devices();
}

void MoeCombine::heard(int rank) noexcept {
  read_note(rank);
  if (on_devices()) return;
  Pair& pair = *pairs_[static_cast<std::size_t>(rank)];
  pair.from.cut(routing_.counts(rank));
  const auto fill = [](std::vector<SliceRows>& slices, const Pieces& pieces, std::int64_t most) {
    for (std::size_t slice = 0; slice < slices.size(); ++slice) {
      const std::size_t piece = slice % static_cast<std::size_t>(most);
      slices[slice] = {};
      if (piece >= pieces.all().size()) continue;
      const Range& rows = pieces.all()[piece].rows;
      slices[slice] = {.first = rows.begin, .count = rows.length()};
    }
  };
  fill(pair.rows_to, pieces_from(rank), pair.most_to);
  fill(pair.rows_from, pair.from, pair.most_from);
  run().exchange().set_rows(rank, pair.rows_to.data(), pair.rows_from.data());
}

void MoeCombine::compute(const TilePlace& place) noexcept {
  const std::vector<Piece>& pieces = pieces_from(place.owner).all();
  const auto number = static_cast<std::size_t>(place.tile.box.rows.begin);
  if (number >= pieces.size()) return;
  const auto& [expert, rows] = pieces[number];
  const Range columns = columns_in(place.tile.box.columns.begin);
  const std::int64_t first = static_cast<std::int64_t>(place.owner) * problem_.capacity + rows.begin;
  multiply({.a = results_.x + first * problem_.depth,
            .a_pitch = problem_.depth,
            .b = problem_.weights[static_cast<std::size_t>(expert)] + columns.begin,
            .b_pitch = problem_.columns,
            .c = reinterpret_cast<float*>(place.target.rows),
            .c_pitch = columns.length(),
            .rows = rows.length(),
            .columns = columns.length(),
            .depth = problem_.depth},
           place.worker);
}

// ---- Sums ----

std::int64_t MoeCombine::tasks_of(int) const noexcept { return token_blocks_ * column_blocks_; }

// All tokens in the first columns, then in the next ones.
Range MoeCombine::tokens_in(const Task& task) const {
  const std::int64_t block = task.number % token_blocks_;
  return elements_of({block, block + 1}, {0, problem_.tokens}, tokens_at_once);
}

MoeCombine::Found MoeCombine::find(std::int64_t entry, const Routing::Place& place, std::int64_t block) const {
  const Pair& from = pair(place.owner);
  const std::size_t piece = from.from.piece_of(results_.experts[entry] - routing_.first_expert(place.owner), place.row);
  return {.slice = static_cast<std::uint32_t>(block * from.most_from) + static_cast<std::uint32_t>(piece),
          .row = place.row - from.from.all()[piece].rows.begin};
}

bool MoeCombine::is_ready(const Task& task) const noexcept {
  const Range tokens = tokens_in(task);
  for (std::int64_t entry = tokens.begin * problem_.choices; entry < tokens.end * problem_.choices; ++entry) {
    const Routing::Place place = routing_.place(entry);
    if (place.owner == Routing::dropped) continue;
    if (!run().exchange().has_come(place.owner, find(entry, place, block_in(task)).slice)) return false;
  }
  return true;
}

void MoeCombine::follow(const Task& task, int) noexcept {
  std::array<const float*, most_choices> rows;
  std::array<float, most_choices> weights;
  const std::int64_t block = block_in(task);
  const Range tokens = tokens_in(task), columns = columns_in(block);
  for (std::int64_t token = tokens.begin; token < tokens.end; ++token) {
    std::size_t count = 0;
    for (std::int64_t entry = token * problem_.choices; entry < (token + 1) * problem_.choices; ++entry) {
      const Routing::Place place = routing_.place(entry);
      if (place.owner == Routing::dropped) continue;
      const Found found = find(entry, place, block);
      rows[count] = reinterpret_cast<const float*>(run().exchange().kept(place.owner, found.slice)) +
                    found.row * columns.length();
      weights[count++] = results_.weights[entry];
    }
    sum_({.rows = rows.data(),
          .weights = weights.data(),
          .count = static_cast<int>(count),
          .columns = columns.length(),
          .sum = problem_.output + token * problem_.columns + columns.begin});
  }
}

}  // namespace plait::fused
