// Shared-memory collectives: what each member gives and gets, and where that lies.
#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/model/builder.h"

namespace plait::plan {

namespace {

std::vector<BlockId> all_blocks(const Builder::ShmCollectiveCall& call) {
  std::vector<BlockId> all;
  for (const std::vector<BlockId>& piece : call.pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

void append(std::vector<BlockId>& to, const std::vector<BlockId>& blocks) {
  to.insert(to.end(), blocks.begin(), blocks.end());
}

}  // namespace

// Operands are put in the order of their lowest contributors; the data that is only moved has no order.
std::vector<std::size_t> Builder::combining_order(const ShmCollectiveCall& call) {
  std::vector<std::size_t> order(call.members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!reduces(call.kind)) return order;
  const BlockId first =
      *std::find_if(call.pieces.begin(), call.pieces.end(), [](const auto& piece) { return !piece.empty(); })->begin();
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return holding(call.members[a], first).lowest < holding(call.members[b], first).lowest;
  });
  return order;
}

std::vector<BlockId> Builder::given(const ShmCollectiveCall& call, std::size_t member) const {
  switch (call.kind) {
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::scatter:
      return member == call.root ? all_blocks(call) : std::vector<BlockId>();
    case ShmCollectiveKind::all_gather:
    case ShmCollectiveKind::gather:
      return call.pieces[member];
    case ShmCollectiveKind::all_to_all: {
      std::vector<BlockId> row;
      for (std::size_t to = 0; to < call.members.size(); ++to)
        append(row, call.pieces[member * call.members.size() + to]);
      return row;
    }
    default:
      return all_blocks(call);
  }
}

// Its own piece stays where it is, unless the output is its place.
std::vector<BlockId> Builder::taken(const ShmCollectiveCall& call, std::size_t member, bool& takes_own) {
  const auto wanted_by_itself = [&] {
    const auto& own = call.pieces[member];
    return std::all_of(own.begin(), own.end(),
                       [&](BlockId block) { return semantics_.output_cell(call.members[member], block).has_value(); });
  };
  takes_own = true;
  switch (call.kind) {
    case ShmCollectiveKind::all_reduce:
      return all_blocks(call);
    case ShmCollectiveKind::reduce:
      return member == call.root ? all_blocks(call) : std::vector<BlockId>();
    case ShmCollectiveKind::broadcast:
      return member != call.root ? all_blocks(call) : std::vector<BlockId>();
    case ShmCollectiveKind::reduce_scatter:
      return call.pieces[member];
    case ShmCollectiveKind::scatter:
      takes_own = member != call.root || wanted_by_itself();
      return takes_own ? call.pieces[member] : std::vector<BlockId>();
    case ShmCollectiveKind::all_to_all: {
      std::vector<BlockId> column;
      for (std::size_t from = 0; from < call.members.size(); ++from)
        append(column, call.pieces[from * call.members.size() + member]);
      return column;
    }
    default: {
      std::vector<BlockId> blocks;
      if (call.kind == ShmCollectiveKind::gather && member != call.root) return blocks;
      takes_own = wanted_by_itself();
      for (std::size_t from = 0; from < call.members.size(); ++from)
        if (from != member || takes_own) append(blocks, call.pieces[from]);
      return blocks;
    }
  }
}

Builder::Holding Builder::taking_place(int rank, BlockId block, bool reduces) {
  const Holding& held = holding(rank, block);
  return reduces && held.present && held.space != Space::input ? held : landing_place(rank, block);
}

void Builder::together(const ShmCollectiveCall& call) {
  if (call.members.size() < 2 || all_blocks(call).empty()) return;
  if (!reduces(call.kind)) return add_shm_collectives(call);
  const std::vector<std::size_t> order = combining_order(call);
  std::vector<int> members;
  std::vector<std::vector<BlockId>> pieces;
  for (const std::size_t member : order) {
    members.push_back(call.members[member]);
    if (has_pieces(call.kind)) pieces.push_back(call.pieces[member]);
  }
  const auto root = static_cast<std::size_t>(std::find(order.begin(), order.end(), call.root) - order.begin());
  if (has_pieces(call.kind)) return add_shm_collectives({call.kind, members, root, pieces});
  add_shm_collectives({call.kind, members, root, call.pieces});
}

void Builder::add_shm_collectives(const ShmCollectiveCall& call) {
  // What members hold changes only when all have been asked what they give.
  std::vector<ShmCollectivePart> parts(call.members.size());
  std::vector<std::int32_t> lowest(semantics_.blocks(), std::numeric_limits<std::int32_t>::max());
  for (std::size_t member = 0; member < parts.size(); ++member) {
    ShmCollectivePart& part = parts[member];
    part.gives = given(call, member);
    part.from = holdings_of(call.members[member], part.gives);
    for (std::size_t i = 0; i < part.gives.size(); ++i)
      lowest[part.gives[i]] = std::min(lowest[part.gives[i]], part.from[i].lowest);
  }
  for (std::size_t member = 0; member < parts.size(); ++member) {
    ShmCollectivePart& part = parts[member];
    part.gets = taken(call, member, part.takes_own);
    for (const BlockId block : part.gets) {
      Holding place = taking_place(call.members[member], block, reduces(call.kind));
      place.lowest = lowest[block];
      part.to.push_back(place);
      holding(call.members[member], block) = place;
    }
    add_shm_collective(call, member, part);
  }
}

void Builder::add_shm_collective(const ShmCollectiveCall& call, std::size_t member, const ShmCollectivePart& part) {
  const int rank = call.members[member];
  Schedule& schedule = ranks_[static_cast<std::size_t>(rank)].schedule;
  ShmCollective collective{
      .kind = call.kind, .root = static_cast<std::int32_t>(call.root), .takes_own = part.takes_own};
  collective.members.first = static_cast<std::uint32_t>(schedule.collective_members.size());
  collective.members.count = static_cast<std::uint32_t>(call.members.size());
  schedule.collective_members.insert(schedule.collective_members.end(), call.members.begin(), call.members.end());
  if (has_pieces(call.kind)) {
    collective.pieces.first = static_cast<std::uint32_t>(schedule.collective_pieces.size());
    collective.pieces.count = collective.members.count;
    for (const auto& piece : call.pieces)
      schedule.collective_pieces.push_back(static_cast<std::uint32_t>(piece.size()));
  }
  collective.blocks.first = static_cast<std::uint32_t>(schedule.collective_blocks.size());
  append(schedule.collective_blocks, call.kind == ShmCollectiveKind::all_to_all ? part.gives : all_blocks(call));
  collective.blocks.count = static_cast<std::uint32_t>(schedule.collective_blocks.size()) - collective.blocks.first;

  Step step{.kind = StepKind::shm_collective, .channel = *routes_.shared_memory()};
  step.collective = static_cast<std::int32_t>(schedule.collectives.size());
  schedule.collectives.push_back(collective);
  step.source = append_runs(rank, part.gives, part.from);
  step.destination = append_runs(rank, part.gets, part.to);
  finish_step(rank, step, part.from, part.to);
}

}  // namespace plait::plan
