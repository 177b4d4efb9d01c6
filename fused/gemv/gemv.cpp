#include "fused/gemv/gemv.h"

#include <algorithm>
#include <utility>

#include "core/attempt.h"
#include "fused/run/plan_text.h"
#include "runtime/reshard/agreement.h"

namespace plait::fused {
namespace {

// A worker's turn, in bytes of weights: long enough that what is between two of them does not count, short enough to
// even out workers and to look after slices that have come.
constexpr std::size_t turn_bytes = 128 * 1024;

// Looks in vain between two looks whether a rank has failed.
constexpr std::uint32_t failures_between_looks = 256;

}  // namespace

// ---- Making ----

Result<std::unique_ptr<Gemv>> Gemv::make(Oob& all, const GemvArguments& arguments, const MakeMembers& make_members) {
  return take_or_withdraw(all, [&] { return make_together(all, arguments, make_members); });
}

Result<std::unique_ptr<Gemv>> Gemv::make_together(Oob& all, const GemvArguments& arguments,
                                                  const MakeMembers& make_members) {
  std::unique_ptr<Gemv> made(new Gemv);
  std::vector<GemvShape> shapes(static_cast<std::size_t>(all.ranks()));
  Status status = attempt([&] { return read_arguments(arguments, made->problem_); });
  status = agree_if_possible(all, status, [] { return std::vector<Said>(); });
  if (!status.ok()) return status;
  const GemvShape mine = shape_of(made->problem_);
  if (Status met = all.gather_all(&mine, sizeof mine, shapes.data(), "exchange their shapes"); !met.ok()) return met;
  status = attempt([&] { return compare_shapes(shapes); });
  if (Status same = all.go_on_together(status); !same.ok()) return status.ok() ? same : status;
  status = attempt([&] { return made->connect(all, make_members); });
  if (Status ready = all_prepared(all, status, "prepare the fused plan"); !ready.ok()) return ready;
  return made;
}

Status Gemv::connect(Oob& all, const MakeMembers& make_members) {
  Result<std::unique_ptr<Ground>> ground = Ground::make(all, make_members);
  if (!ground.ok()) return ground.status();
  ground_ = std::move(*ground);
  Result<PlanCosts> costs = agree_on_costs(ground_->members().oob(), ground_->team());
  if (!costs.ok()) return costs.status();
  costs_ = *costs;
  ExchangeRequest request;
  const Status laid_out = attempt([&] { return lay_out(request); });
  if (Status status = ground_->members().oob().go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> exchange = Exchange::make(ground_->team(), std::move(request));
  if (!exchange.ok()) return exchange.status();
  exchange_ = std::move(*exchange);
  return attempt([&]() -> Status {
    prepare(problem_.options.workers != 0 ? problem_.options.workers : costs_.processors.own);
    describe();
    return {};
  });
}

// The same on all ranks, as the parts of a slice come from all of them: the longest way counts.
std::size_t Gemv::bytes_of_slices() const {
  if (problem_.options.slice_bytes != 0) return problem_.options.slice_bytes;
  const std::int64_t most_rows = share_of(problem_.rows, ranks(), 0).length();
  const std::uint64_t bytes = static_cast<std::uint64_t>(most_rows) * problem_.cell_bytes();
  const bool is_far = ground_->team() != nullptr && ground_->team()->planner.hierarchy().nodes() > 1;
  return slice_bytes(is_far ? costs_.far : costs_.near, bytes);
}

// Rows of the result that are the owner's. Slices are the same on all ranks; tiles are a rank's own affair.
Pane Gemv::pane_of(int owner, std::size_t bytes_of_slice) const {
  const Box box{share_of(problem_.rows, ranks(), owner), {0, 1}};
  const std::size_t tile_rows = std::max<std::size_t>(turn_bytes / std::max<std::size_t>(problem_.row_bytes(), 1), 1);
  const std::size_t cell = problem_.cell_bytes();
  return cut(box, grain_of(box, {.cell_bytes = cell, .slice_bytes = bytes_of_slice, .tile_bytes = tile_rows * cell}));
}

// In the output, where a column follows the other.
Blocks Gemv::blocks_of(const Pane& pane, bool kept) const {
  Blocks blocks;
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices)
    blocks.push_back({.offset = static_cast<std::uint64_t>(slice.box.rows.begin) * sizeof(float),
                      .row_bytes = static_cast<std::uint64_t>(slice.box.rows.length()) * sizeof(float),
                      .rows = static_cast<std::uint64_t>(problem_.columns),
                      .kept = kept});
  return blocks;
}

// To each other rank first the parts of its slices, which it keeps, then the sums of this rank's.
Status Gemv::lay_out(ExchangeRequest& request) {
  const std::uint64_t pitch = static_cast<std::uint64_t>(problem_.rows) * sizeof(float);
  request.output = {
      .data = problem_.output, .pitch = pitch, .bytes = pitch * static_cast<std::uint64_t>(problem_.columns)};
  const std::size_t bytes_of_slice = bytes_of_slices();
  for (int owner = 0; owner < ranks(); ++owner) {
    shares_.push_back(std::make_unique<Share>());
    shares_.back()->pane = pane_of(owner, bytes_of_slice);
    shares_.back()->left = std::make_unique<std::atomic<std::uint32_t>[]>(shares_.back()->pane.slices.size());
  }
  const Pane& own = share(rank()).pane;
  const auto both = [&](const Pane& parts, const Pane& sums) {
    Blocks blocks = blocks_of(parts, true);
    const Blocks behind = blocks_of(sums, false);
    blocks.insert(blocks.end(), behind.begin(), behind.end());
    return blocks;
  };
  for (int other = 0; other < ranks(); ++other) {
    const bool self = other == rank();
    request.outgoing.push_back(self ? blocks_of(own, false) : both(share(other).pane, own));
    request.incoming.push_back(self ? Blocks() : both(own, share(other).pane));
  }
  own_places_ = packed(blocks_of(own, true));
  own_parts_.reserve(std::max<std::uint64_t>(own_places_.back(), 1));
  own_come_ = std::make_unique<std::atomic<std::uint32_t>[]>(own.slices.size());
  return {};
}

void Gemv::prepare(int workers) {
  const auto count = static_cast<std::size_t>(ranks());
  std::vector<int> nodes(count, 0);
  if (const Team* team = ground_->team(); team != nullptr)
    for (int of = 0; of < ranks(); ++of) nodes[static_cast<std::size_t>(of)] = team->planner.hierarchy().node_of(of);
  order_ = problem_.options.aware ? communication_order(nodes, rank()) : plain_order(ranks());
  kernel_ = gemv_kernel(problem_.type);
  sum_ = make_reducer(Op::sum, Element::f32);
  ends_.resize(static_cast<std::size_t>(workers));
  for (Ends& ends : ends_) {
    ends.parts.resize(count);
    ends.part_rows.resize(count);
    ends.sums.resize(count);
    ends.sum_rows.resize(count);
  }
  crew_ = std::make_unique<Crew>(workers, costs_.processors.crowded || workers > costs_.processors.own);
  arm();
}

void Gemv::describe() {
  PlanNumbers numbers{.workers = crew_->workers(), .ranks = ranks()};
  for (const auto& one : shares_) {
    numbers.slices += one->pane.slices.size();
    numbers.tiles += one->pane.tiles.size();
  }
  description_ = plan_text("gemv", numbers, *exchange_);
}

Gemv::~Gemv() {
  if (started_) static_cast<void>(wait());
}

// ---- A run ----

// Tiles that were not computed, of a run that was over before, count again.
void Gemv::arm() {
  for (const auto& one : shares_)
    for (std::size_t slice = 0; slice < one->pane.slices.size(); ++slice)
      one->left[slice].store(one->pane.slices[slice].tiles, std::memory_order_relaxed);
}

Status Gemv::start(const float* x) {
  if (!failure_.ok()) return failure_;
  if (started_) return {Code::unsupported, "start: the plan's last run has not been waited for"};
  x_ = x;
  ++run_;
  Complaint complaint;
  const bool bad = complains(problem_, x, complaint);
  for (const auto& one : shares_) one->next.store(0, std::memory_order_relaxed);
  next_sum_.store(0, std::memory_order_relaxed);
  added_.store(0, std::memory_order_relaxed);
  exchange_->begin(bad ? &complaint : nullptr);
  started_ = true;
  crew_->begin(work_);
  return {};
}

Status Gemv::wait() {
  if (!started_) return {Code::unsupported, "wait: the plan has not been started"};
  crew_->join();
  started_ = false;
  if (const Status status = exchange_->conclude(); !status.ok()) {
    Team& team = *ground_->team();
    failure_ = team.reason_of(status);
    team.give_up(failure_);
    return failure_;
  }
  const auto& refusal = exchange_->refusal();
  if (!refusal) return {};
  arm();
  return attempt([&] {
    return Status(Code::invalid,
                  gemv_complaint_text(refusal->complaint) + " (on rank " + std::to_string(refusal->rank) + ")");
  });
}

// `first`: owners before this place have no tiles left.
Gemv::Take Gemv::take(std::size_t& first, Turn& taken) {
  bool later = false;
  for (std::size_t at = first; at < order_.size(); ++at) {
    const int owner = order_[at];
    Share& one = share(owner);
    const std::size_t tiles = one.pane.tiles.size();
    if (one.next.load(std::memory_order_relaxed) >= tiles) {
      if (at == first) ++first;
      continue;
    }
    if (!exchange_->may_leave(owner)) {
      later = true;
      continue;
    }
    const std::uint32_t tile = one.next.fetch_add(1, std::memory_order_relaxed);
    if (tile >= tiles) continue;
    taken = {owner, tile};
    return Take::one;
  }
  return later ? Take::later : Take::none;
}

// Where this rank's part of a slice goes.
Target Gemv::part_of(int owner, std::uint32_t slice) const {
  if (owner != rank()) return exchange_->target(owner, slice);
  const std::int64_t rows = share(owner).pane.slices[slice].box.rows.length();
  return {own_parts_.data() + own_places_[slice], static_cast<std::uint64_t>(rows) * sizeof(float)};
}

void Gemv::compute(const Turn& taken) {
  Share& one = share(taken.owner);
  const Tile& tile = one.pane.tiles[taken.tile];
  const Slice& slice = one.pane.slices[tile.slice];
  const Target target = part_of(taken.owner, tile.slice);
  const std::int64_t row = tile.box.rows.begin;
  kernel_({.weights = problem_.weights + static_cast<std::size_t>(row) * problem_.row_bytes(),
           .scales = problem_.scales != nullptr ? problem_.scales + row : nullptr,
           .rows = tile.box.rows.length(),
           .depth = problem_.depth,
           .inputs = x_,
           .columns = problem_.columns,
           .results = target.rows + static_cast<std::size_t>(row - slice.box.rows.begin) * sizeof(float),
           .pitch = static_cast<std::ptrdiff_t>(target.pitch)});
  // Who ends the slice has seen what the others wrote. The count is as it was for the next run.
  std::atomic<std::uint32_t>& left = one.left[tile.slice];
  if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  left.store(slice.tiles, std::memory_order_relaxed);
  if (taken.owner == rank())
    own_come_[tile.slice].store(run_, std::memory_order_release);
  else
    exchange_->finished(taken.owner, tile.slice);
}

bool Gemv::has_all_parts(std::uint32_t slice) const {
  if (own_come_[slice].load(std::memory_order_acquire) != run_) return false;
  for (int source = 0; source < ranks(); ++source)
    if (source != rank() && !exchange_->has_come(source, slice)) return false;
  return true;
}

// The next of this rank's slices, once all parts of it are there. Any worker may, and none waits for another.
bool Gemv::add_one(int worker) {
  std::uint32_t slice = next_sum_.load(std::memory_order_relaxed);
  if (slice == own_slices() || !exchange_->is_good() || !has_all_parts(slice)) return false;
  if (!next_sum_.compare_exchange_strong(slice, slice + 1, std::memory_order_relaxed)) return false;
  add(slice, ends_[static_cast<std::size_t>(worker)]);
  added_.fetch_add(1, std::memory_order_release);
  return true;
}

// In the order of the ranks, into the outputs of all.
void Gemv::add(std::uint32_t slice, Ends& ends) {
  const auto count = static_cast<std::size_t>(ranks());
  const auto sum_at = [&](int owner) {  // behind the parts of what is the owner's
    return owner == rank() ? slice : static_cast<std::uint32_t>(share(owner).pane.slices.size()) + slice;
  };
  for (int of = 0; of < ranks(); ++of) {
    const auto at = static_cast<std::size_t>(of);
    ends.parts[at] = of == rank() ? own_parts_.data() + own_places_[slice] : exchange_->kept(of, slice);
    ends.sums[at] = exchange_->target(of, sum_at(of));
  }
  const auto rows = static_cast<std::size_t>(share(rank()).pane.slices[slice].box.rows.length());
  for (std::size_t column = 0; column < static_cast<std::size_t>(problem_.columns); ++column) {
    for (std::size_t at = 0; at < count; ++at) {
      ends.part_rows[at] = ends.parts[at] + column * rows * sizeof(float);
      ends.sum_rows[at] = ends.sums[at].rows + column * ends.sums[at].pitch;
    }
    reduce_many(sum_, {.results = ends.sum_rows.data(),
                       .result_count = count,
                       .sources = ends.part_rows.data(),
                       .source_count = count,
                       .elements = rows,
                       .streaming = false});
  }
  for (int owner = 0; owner < ranks(); ++owner)
    if (owner != rank()) exchange_->finished(owner, sum_at(owner));
}

void Gemv::work(int worker) noexcept {
  const bool leads = worker == 0;
  std::size_t first = 0;
  std::uint32_t vain = 0;
  Patience patience(crew_->crowded());
  while (!exchange_->is_over()) {
    Turn taken;
    const Take found = take(first, taken);
    if (found == Take::one) compute(taken);
    const bool moved = exchange_->turn(leads);
    if (add_one(worker) || moved || found == Take::one) {
      patience.reset();
      continue;
    }
    if (found == Take::none && (!leads || (is_all_added() && exchange_->is_settled()))) return;
    patience.wait();
    if (leads && ++vain % failures_between_looks == 0) exchange_->look_for_failures();
  }
  while (leads && !exchange_->is_settled()) {
    if (!exchange_->turn(true)) patience.wait();
  }
}

}  // namespace plait::fused
