#include "fused/embedding/embedding.h"

#include <algorithm>
#include <array>
#include <exception>
#include <type_traits>
#include <utility>

#include "core/attempt.h"

namespace plait::fused {
namespace {

// A worker's turn: long enough that what is between two of them does not count, short enough to even out workers.
constexpr std::size_t tile_bytes = 8 * 1024;

// Looks in vain between two looks whether a rank has failed.
constexpr std::uint32_t failures_every = 256;

Range all_of(std::int64_t length) { return {0, length}; }

}  // namespace

// ---- Making ----

Result<std::unique_ptr<Embedding>> Embedding::make(Oob& all, const EmbeddingArguments& arguments,
                                                   const MakeMembers& make_members) {
  try {
    return make_together(all, arguments, make_members);
  } catch (const std::exception& exception) {  // before a step that the others take
    all.withdraw();
    return status_of(exception);
  }
}

Result<std::unique_ptr<Embedding>> Embedding::make_together(Oob& all, const EmbeddingArguments& arguments,
                                                            const MakeMembers& make_members) {
  std::unique_ptr<Embedding> made(new Embedding);
  Status status = attempt([&] { return read_arguments(arguments, all.ranks(), all.rank(), made->problem_); });
  status = agree_if_possible(all, status, [&] { return arguments_said(made->problem_); });
  if (!status.ok()) return status;
  status = attempt([&] { return made->connect(all, make_members); });
  const std::array<std::int64_t, 1> good = {status.ok() ? 1 : 0};
  std::array<std::int64_t, 1> all_good = {0};
  if (Status met = reduce_all(all, good, all_good, Op::min, "prepare a fused plan"); !met.ok()) return met;
  if (all_good[0] == 0 && status.ok())
    return attempt([] { return Status(Code::unavailable, "another rank could not prepare the fused plan"); });
  if (!status.ok()) return status;
  return made;
}

Status Embedding::connect(Oob& all, const MakeMembers& make_members) {
  Result<std::unique_ptr<Ground>> ground = Ground::make(all, make_members);
  if (!ground.ok()) return ground.status();
  ground_ = std::move(*ground);
  if (Status status = agree_on_sizes(); !status.ok()) return status;
  ExchangeRequest request;
  const Status laid_out = attempt([&] { return lay_out(request); });
  if (Status status = ground_->members().oob().go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> exchange = Exchange::make(ground_->team(), std::move(request));
  if (!exchange.ok()) return exchange.status();
  exchange_ = std::move(*exchange);
  return attempt([&]() -> Status {
    const int workers = problem_.options.workers != 0 ? problem_.options.workers : processors_.own;
    crew_ = std::make_unique<Crew>(workers, processors_.crowded || workers > processors_.own);
    kernel_ = pooling_kernel(problem_.type, problem_.weighted);
    line_up_tiles();
    arm();
    describe();
    return {};
  });
}

// How many tables each rank has; and what a message costs, in rank 0's words.
Status Embedding::agree_on_sizes() {
  Oob& oob = ground_->members().oob();
  std::vector<std::int64_t> tables;
  const Status room = attempt([&]() -> Status {
    tables.resize(static_cast<std::size_t>(ranks()));
    first_table_.assign(1, 0);
    first_table_.reserve(tables.size() + 1);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const auto mine = static_cast<std::int64_t>(problem_.tables.size());
  if (Status met = oob.gather_all(&mine, sizeof mine, tables.data(), "exchange how many tables they have"); !met.ok())
    return met;
  for (const std::int64_t count : tables) first_table_.push_back(first_table_.back() + count);
  static_assert(std::is_trivially_copyable_v<Sizes>);
  if (const Team* team = ground_->team(); team != nullptr)
    sizes_ = {.near = cost_within_node(team->planner.machine()), .far = cost_between_nodes(team->planner.machine())};
  if (Status met = oob.tell_all(&sizes_, sizeof sizes_, "agree on their slices"); !met.ok()) return met;
  const Result<Processors> processors = own_processors(oob);
  if (!processors.ok()) return processors.status();
  processors_ = *processors;
  return {};
}

int Embedding::node_of(int rank) const {
  return ground_->team() != nullptr ? ground_->team()->planner.hierarchy().node_of(rank) : 0;
}

// The same on both of them.
Pane Embedding::pane_of(int producer, int owner) const {
  const Box box{all_of(share_of(problem_.batch, ranks(), owner).length()), all_of(tables_of(producer))};
  const std::uint64_t bytes = static_cast<std::uint64_t>(box.cells()) * problem_.cell_bytes();
  const WayCost& way = node_of(producer) == node_of(owner) ? sizes_.near : sizes_.far;
  const std::size_t slice = problem_.options.slice_bytes != 0 ? problem_.options.slice_bytes : slice_bytes(way, bytes);
  return cut(box, grain_of(box, {.cell_bytes = problem_.cell_bytes(), .slice_bytes = slice, .tile_bytes = tile_bytes}));
}

Blocks Embedding::blocks_of(const Pane& pane, int producer) const {
  const std::uint64_t cell = problem_.cell_bytes();
  const std::uint64_t pitch = static_cast<std::uint64_t>(first_table_.back()) * cell;
  Blocks blocks;
  blocks.reserve(pane.slices.size());
  for (const Slice& slice : pane.slices) {
    const auto first =
        static_cast<std::uint64_t>(first_table_[static_cast<std::size_t>(producer)] + slice.box.columns.begin);
    blocks.push_back({.offset = static_cast<std::uint64_t>(slice.box.rows.begin) * pitch + first * cell,
                      .row_bytes = static_cast<std::uint64_t>(slice.box.columns.length()) * cell,
                      .rows = static_cast<std::uint64_t>(slice.box.rows.length())});
  }
  return blocks;
}

Status Embedding::lay_out(ExchangeRequest& request) {
  const std::uint64_t pitch = static_cast<std::uint64_t>(first_table_.back()) * problem_.cell_bytes();
  const Range own = share_of(problem_.batch, ranks(), rank());
  request.output = {.data = problem_.output, .pitch = pitch, .bytes = static_cast<std::uint64_t>(own.length()) * pitch};
  for (int other = 0; other < ranks(); ++other) {
    auto share = std::make_unique<Share>();
    share->pane = pane_of(rank(), other);
    share->first_bag = share_of(problem_.batch, ranks(), other).begin;
    share->left = std::make_unique<std::atomic<std::uint32_t>[]>(share->pane.slices.size());
    request.outgoing.push_back(blocks_of(share->pane, rank()));
    request.incoming.push_back(other == rank() ? Blocks() : blocks_of(pane_of(other, rank()), other));
    shares_.push_back(std::move(share));
  }
  return {};
}

// What goes by messages comes first, an owner after the other: it has the longest way. What is written to where it
// stays waits for nothing but memory, which is used best where each table is read once for all owners.
void Embedding::line_up_tiles() {
  std::vector<const Pane*> panes;
  std::vector<int> nodes;
  for (int owner = 0; owner < ranks(); ++owner) {
    panes.push_back(&shares_[static_cast<std::size_t>(owner)]->pane);
    nodes.push_back(node_of(owner));
  }
  const auto add = [&](std::vector<int> owners) {
    queues_.push_back(std::make_unique<Queue>());
    queues_.back()->turns = line_up(panes, owners);
    queues_.back()->owners = std::move(owners);
  };
  std::vector<int> near;
  const bool aware = problem_.options.aware;
  for (const int owner : aware ? communication_order(nodes, rank()) : plain_order(ranks()))
    if (aware && exchange_->reach(owner) != Reach::messages)
      near.push_back(owner);
    else
      add({owner});
  if (!near.empty()) add(std::move(near));
}

void Embedding::describe() {
  std::array<int, 4> owners{};
  std::size_t slices = 0, tiles = 0;
  for (int owner = 0; owner < ranks(); ++owner) {
    ++owners[static_cast<std::size_t>(exchange_->reach(owner))];
    slices += shares_[static_cast<std::size_t>(owner)]->pane.slices.size();
    tiles += shares_[static_cast<std::size_t>(owner)]->pane.tiles.size();
  }
  const auto field = [](const char* name, auto value) {
    return ", \"" + std::string(name) + "\": " + std::to_string(value);
  };
  description_ = "{\"operator\": \"embedding\"" + field("workers", crew_->workers()) + field("slices", slices) +
                 field("tiles", tiles) + field("direct", owners[1]) + field("staged", owners[2]) +
                 field("messages", owners[3]) + "}";
}

Embedding::~Embedding() {
  if (started_) static_cast<void>(wait());
}

// ---- A run ----

// Tiles that were not computed, of a run that was over before, count again.
void Embedding::arm() {
  for (const auto& share : shares_)
    for (std::size_t slice = 0; slice < share->pane.slices.size(); ++slice)
      share->left[slice].store(share->pane.slices[slice].tiles, std::memory_order_relaxed);
}

Status Embedding::start(const Lookup& lookup) {
  if (!failure_.ok()) return failure_;
  if (started_) return {Code::unsupported, "start: the plan's last run has not been waited for"};
  lookup_ = lookup;
  Complaint complaint;
  const bool bad = complains(problem_, lookup, complaint);
  for (const auto& queue : queues_) queue->next.store(0, std::memory_order_relaxed);
  exchange_->begin(bad ? &complaint : nullptr);
  started_ = true;
  crew_->begin(work_);
  return {};
}

Status Embedding::wait() {
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
    return Status(Code::invalid, text_of(refusal->complaint) + " (on rank " + std::to_string(refusal->rank) + ")");
  });
}

bool Embedding::may_take(const Queue& queue) const {
  return std::ranges::all_of(queue.owners, [this](int owner) { return exchange_->may_write(owner); });
}

// `first`: queues before this one have no tiles left.
Embedding::Take Embedding::take(std::size_t& first, Turn& taken) {
  bool later = false;
  for (std::size_t at = first; at < queues_.size(); ++at) {
    Queue& queue = *queues_[at];
    if (queue.next.load(std::memory_order_relaxed) >= queue.turns.size()) {
      if (at == first) ++first;
      continue;
    }
    if (!may_take(queue)) {
      later = true;
      continue;
    }
    const std::uint32_t turn = queue.next.fetch_add(1, std::memory_order_relaxed);
    if (turn >= queue.turns.size()) continue;
    taken = queue.turns[turn];
    return Take::one;
  }
  return later ? Take::later : Take::none;
}

void Embedding::compute(const Turn& taken) {
  Share& share = *shares_[static_cast<std::size_t>(taken.owner)];
  const Tile& tile = share.pane.tiles[taken.tile];
  const Slice& slice = share.pane.slices[tile.slice];
  const Target target = exchange_->target(taken.owner, tile.slice);
  const std::int64_t number = tile.box.columns.begin;
  const Table& table = problem_.tables[static_cast<std::size_t>(number)];
  std::byte* sums = target.rows +
                    static_cast<std::uint64_t>(tile.box.rows.begin - slice.box.rows.begin) * target.pitch +
                    static_cast<std::size_t>(number - slice.box.columns.begin) * problem_.cell_bytes();
  kernel_({.table = table.data,
           .scales = table.scales,
           .columns = problem_.dim,
           .indices = lookup_.indices,
           .weights = lookup_.weights,
           .offsets = lookup_.offsets + number * problem_.batch + share.first_bag + tile.box.rows.begin,
           .bags = tile.box.rows.length(),
           .next_end = lookup_.offsets[(number + 1) * problem_.batch],
           .sums = sums,
           .pitch = static_cast<std::ptrdiff_t>(target.pitch),
           .mean = problem_.mean});
  // Who ends the slice has seen what the others wrote. The count is as it was for the next run.
  std::atomic<std::uint32_t>& left = share.left[tile.slice];
  if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  left.store(slice.tiles, std::memory_order_relaxed);
  exchange_->finished(taken.owner, tile.slice);
}

void Embedding::work(int worker) noexcept {
  const bool leads = worker == 0;
  std::size_t first = 0;
  std::uint32_t vain = 0;
  Patience patience(crew_->crowded());
  while (!exchange_->is_over()) {
    Turn taken;
    const Take found = take(first, taken);
    if (found == Take::one) compute(taken);
    if (exchange_->turn(leads) || found == Take::one) {
      patience.reset();
      continue;
    }
    if (found == Take::none && (!leads || exchange_->is_settled())) return;
    patience.wait();
    if (leads && ++vain % failures_every == 0) exchange_->look_for_failures();
  }
  while (leads && !exchange_->is_settled()) {
    if (!exchange_->turn(true)) patience.wait();
  }
}

}  // namespace plait::fused
