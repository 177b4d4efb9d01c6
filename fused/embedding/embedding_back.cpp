#include "fused/embedding/embedding_back.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/attempt.h"
#include "fused/run/plan_text.h"
#include "runtime/reshard/agreement.h"

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

Result<std::unique_ptr<EmbeddingBack>> EmbeddingBack::make(Oob& all, const EmbeddingArguments& arguments,
                                                           const MakeMembers& make_members) {
  return take_or_withdraw(all, [&] { return make_together(all, arguments, make_members); });
}

Result<std::unique_ptr<EmbeddingBack>> EmbeddingBack::make_together(Oob& all, const EmbeddingArguments& arguments,
                                                                    const MakeMembers& make_members) {
  std::unique_ptr<EmbeddingBack> made(new EmbeddingBack);
  Status status = attempt([&] { return read_arguments(arguments, all.ranks(), all.rank(), made->problem_); });
  status = agree_if_possible(all, status, [&] { return arguments_said(made->problem_); });
  if (!status.ok()) return status;
  status = attempt([&] { return made->connect(all, make_members); });
  if (Status ready = all_prepared(all, status, "prepare the fused plan"); !ready.ok()) return ready;
  return made;
}

Status EmbeddingBack::connect(Oob& all, const MakeMembers& make_members) {
  Result<std::unique_ptr<Ground>> ground = Ground::make(all, make_members);
  if (!ground.ok()) return ground.status();
  ground_ = std::move(*ground);
  if (Status status = layout_.agree(*ground_, problem_); !status.ok()) return status;
  ExchangeRequest exchange;
  TileRunRequest run;
  const Status laid_out = attempt([&] { return lay_out(exchange, run); });
  if (Status status = ground_->members().oob().go_on_together(laid_out); !status.ok()) return status;
  Result<std::unique_ptr<Exchange>> made = Exchange::make(ground_->team(), std::move(exchange));
  if (!made.ok()) return made.status();
  return attempt([&]() -> Status {
    run_ = std::make_unique<TileRun>(static_cast<TileWork&>(*this), ground_->team(), std::move(*made), std::move(run));
    kernel_ = scatter_kernel(problem_.type, problem_.weighted);
    make_chains(run_->workers());
    describe();
    return {};
  });
}

// What is this rank's own stays where it is.
Status EmbeddingBack::lay_out(ExchangeRequest& exchange, TileRunRequest& run) {
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
  run.node_of = layout_.node_of();
  run.processors = layout_.processors();
  run.workers = problem_.options.workers;
  run.aware = problem_.options.aware;
  run.kept = true;
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

void EmbeddingBack::make_chains(int workers) {
  const auto tables = static_cast<std::int64_t>(problem_.tables.size());
  const std::int64_t wanted = workers == 1 ? tables : chains_a_worker * workers;
  const std::int64_t most = std::max<std::int64_t>(problem_.dim / least_chain_columns, 1);
  const auto parts =
      static_cast<int>(std::clamp<std::int64_t>((wanted + tables - 1) / std::max<std::int64_t>(tables, 1), 1, most));
  for (std::int64_t table = 0; table < tables; ++table) {
    const std::vector<Addition>& additions = additions_[static_cast<std::size_t>(table)];
    for (int part = 0; part < parts && !additions.empty(); ++part) {
      chains_.push_back(std::make_unique<Chain>());
      chains_.back()->table = table;
      chains_.back()->columns = share_of(problem_.dim, parts, part);
      chains_.back()->additions = &additions;
    }
  }
  places_.resize(static_cast<std::size_t>(workers));
}

void EmbeddingBack::describe() {
  PlanNumbers numbers{.workers = run_->workers(), .ranks = layout_.ranks()};
  for (const Pane& pane : run_->panes()) {
    numbers.slices += pane.slices.size();
    numbers.tiles += pane.tiles.size();
  }
  description_ = plan_text("embedding_back", numbers, run_->exchange());
}

// ---- A run ----

Status EmbeddingBack::start(const Lookup& lookup, float factor) {
  if (run_->is_started()) return run_->start(nullptr);  // says what is wrong with that
  Complaint complaint;
  const bool bad = complains(problem_, lookup, complaint);
  lookup_ = lookup;
  factor_ = factor;
  left_.store(chains_.size(), std::memory_order_relaxed);
  for (const auto& chain : chains_) chain->done = 0;
  for (std::size_t worker = 0; worker < places_.size(); ++worker)
    places_[worker].chain = worker * chains_.size() / places_.size();
  return run_->start(bad ? &complaint : nullptr);
}

Status EmbeddingBack::wait() {
  if (Status status = run_->wait(); !status.ok()) return status;
  const auto& refusal = run_->refusal();
  if (!refusal) return {};
  return attempt([&] {
    return Status(Code::invalid, text_of(refusal->complaint) + " (on rank " + std::to_string(refusal->rank) + ")");
  });
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

// The worker stays with a table as long as its next slice is there.
bool EmbeddingBack::use_what_has_come(int worker) noexcept {
  std::size_t& place = places_[static_cast<std::size_t>(worker)].chain;
  for (std::size_t looked = 0; looked < chains_.size(); ++looked) {
    const Step step = advance(*chains_[place]);
    if (step != Step::one) place = place + 1 < chains_.size() ? place + 1 : 0;
    if (step != Step::none) return true;
  }
  return false;
}

// Who has the turn has seen what the one before has written.
EmbeddingBack::Step EmbeddingBack::advance(Chain& chain) {
  if (chain.taken.test_and_set(std::memory_order_acquire)) return Step::none;
  Step step = Step::none;
  const std::vector<Addition>& additions = *chain.additions;
  if (chain.done < additions.size()) {
    const Addition& next = additions[chain.done];
    if (next.source == layout_.rank() || run_->exchange().has_come(next.source, next.slice)) {
      add(chain, next);
      step = ++chain.done < additions.size() ? Step::one : Step::last;
    }
  }
  chain.taken.clear(std::memory_order_release);
  if (step == Step::last) left_.fetch_sub(1, std::memory_order_release);
  return step;
}

void EmbeddingBack::add(const Chain& chain, const Addition& addition) {
  const bool own = addition.source == layout_.rank();
  const std::byte* gradients = own ? problem_.gradients : run_->exchange().kept(addition.source, addition.slice);
  const Table& table = problem_.tables[static_cast<std::size_t>(chain.table)];
  const auto first = static_cast<std::size_t>(chain.columns.begin);
  const std::int64_t* offsets = lookup_.offsets + chain.table * problem_.batch;
  kernel_({.table = table.target + first * bytes_of(problem_.type),
           .row_elements = problem_.dim,
           .columns = chain.columns.length(),
           .indices = lookup_.indices,
           .weights = lookup_.weights,
           .offsets = offsets + addition.samples.begin,
           .bags = addition.samples.length(),
           .next_end = offsets[addition.end],
           .gradients = gradients + addition.offset + first * sizeof(float),
           .pitch = static_cast<std::ptrdiff_t>(addition.pitch),
           .factor = factor_,
           .mean = problem_.mean});
}

}  // namespace plait::fused
