// Shared-memory collectives: what each member gives and gets, and where that lies.
#include <algorithm>

#include "plan/model/builder.h"

namespace plait::plan {

namespace {

void append(BlockRuns& to, const BlockRuns& blocks) { to.insert(to.end(), blocks.begin(), blocks.end()); }

BlockRuns all_blocks(const Builder::ShmCollectiveCall& call) {
  BlockRuns all;
  for (const BlockRuns& piece : call.pieces) append(all, piece);
  return all;
}

}  // namespace

BlockRuns Builder::given(const ShmCollectiveCall& call, std::size_t member) const {
  switch (call.kind) {
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::scatter:
      return member == call.root ? all_blocks(call) : BlockRuns();
    case ShmCollectiveKind::all_gather:
    case ShmCollectiveKind::gather:
      return call.pieces[member];
    case ShmCollectiveKind::all_to_all: {
      BlockRuns row;
      for (std::size_t to = 0; to < call.members.size(); ++to)
        append(row, call.pieces[member * call.members.size() + to]);
      return row;
    }
    default:
      return all_blocks(call);
  }
}

bool Builder::wants_itself(int rank, const BlockRuns& blocks) const {
  return std::all_of(blocks.begin(), blocks.end(), [&](BlockRun run) {
    const Semantics::Stretch stretch = semantics_.output_stretch(rank, run);
    if (!stretch.cell) return false;
    run.first += stretch.count;
    run.count -= stretch.count;
    return run.count == 0 || wants_itself(rank, {run});
  });
}

// Its own piece stays where it is, unless the output is its place.
BlockRuns Builder::taken(const ShmCollectiveCall& call, std::size_t member, bool& takes_own) const {
  const auto wanted_by_itself = [&] { return wants_itself(call.members[member], call.pieces[member]); };
  takes_own = true;
  switch (call.kind) {
    case ShmCollectiveKind::all_reduce:
      return all_blocks(call);
    case ShmCollectiveKind::reduce:
      return member == call.root ? all_blocks(call) : BlockRuns();
    case ShmCollectiveKind::broadcast:
      return member != call.root ? all_blocks(call) : BlockRuns();
    case ShmCollectiveKind::reduce_scatter:
      return call.pieces[member];
    case ShmCollectiveKind::scatter:
      takes_own = member != call.root || wanted_by_itself();
      return takes_own ? call.pieces[member] : BlockRuns();
    case ShmCollectiveKind::all_to_all: {
      BlockRuns column;
      for (std::size_t from = 0; from < call.members.size(); ++from)
        append(column, call.pieces[from * call.members.size() + member]);
      return column;
    }
    default: {
      BlockRuns blocks;
      if (call.kind == ShmCollectiveKind::gather && member != call.root) return blocks;
      takes_own = wanted_by_itself();
      for (std::size_t from = 0; from < call.members.size(); ++from)
        if (from != member || takes_own) append(blocks, call.pieces[from]);
      return blocks;
    }
  }
}

void Builder::together(const ShmCollectiveCall& call) {
  const auto has_none = [](const BlockRuns& piece) { return piece.empty(); };
  if (call.members.size() < 2 || std::ranges::all_of(call.pieces, has_none)) return;
  if (only() != all_ranks && std::ranges::find(call.members, only()) == call.members.end()) return;
  for (std::size_t member = 0; member < call.members.size(); ++member)
    if (builds(call.members[member])) add_shm_collective(call, member);
}

void Builder::append_ids(std::vector<BlockId>& ids, std::span<const BlockRun> blocks) const {
  for (const BlockRun& run : blocks)
    for (int segment = run.first; segment < run.first + run.count; ++segment)
      ids.push_back(semantics_.block(segment, run.chunk));
}

void Builder::add_shm_collective(const ShmCollectiveCall& call, std::size_t member) {
  const int rank = call.members[member];
  Schedule& schedule = state_of(rank).schedule;
  ShmCollective collective{.kind = call.kind, .root = static_cast<std::int32_t>(call.root)};
  const BlockRuns gives = given(call, member), gets = taken(call, member, collective.takes_own);
  collective.members = {static_cast<std::uint32_t>(schedule.collective_members.size()),
                        static_cast<std::uint32_t>(call.members.size())};
  schedule.collective_members.insert(schedule.collective_members.end(), call.members.begin(), call.members.end());
  if (has_pieces(call.kind)) {
    collective.pieces = {static_cast<std::uint32_t>(schedule.collective_pieces.size()), collective.members.count};
    for (const BlockRuns& piece : call.pieces) {
      std::uint32_t blocks = 0;
      for (const BlockRun& run : piece) blocks += static_cast<std::uint32_t>(run.count);
      schedule.collective_pieces.push_back(blocks);
    }
  }
  collective.blocks.first = static_cast<std::uint32_t>(schedule.collective_blocks.size());
  append_ids(schedule.collective_blocks, call.kind == ShmCollectiveKind::all_to_all ? gives : all_blocks(call));
  collective.blocks.count = static_cast<std::uint32_t>(schedule.collective_blocks.size()) - collective.blocks.first;

  Step step{.kind = StepKind::shm_collective, .channel = *routes_.shared_memory()};
  step.collective = static_cast<std::int32_t>(schedule.collectives.size());
  schedule.collectives.push_back(collective);
  // In ascending order, which who calls may know already.
  const auto ascending = [&](const BlockRuns& blocks, bool are_all) {
    return are_all && !call.all.empty() ? BlockRuns(call.all.begin(), call.all.end()) : merged(blocks);
  };
  read_all(rank, ascending(gives, reduces(call.kind)));
  step.source = append_runs(rank, cells_of(rank, gives));
  const bool gets_all = call.kind == ShmCollectiveKind::all_gather && collective.takes_own;
  write_all(rank, ascending(gets, gets_all), [&](const BlockRun& at, Part& part) {
    // What was reduced before stays where it is.
    if (!reduces(call.kind) || !part.present || part.space == Space::input) land(rank, at, part);
  });
  step.destination = append_runs(rank, cells_of(rank, gets));
  finish_step(rank, step);
}

}  // namespace plait::plan
