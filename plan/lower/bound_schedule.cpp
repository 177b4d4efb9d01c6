#include "plan/lower/bound_schedule.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/lower/block_sizes.h"

namespace plait::plan {

namespace {

// What a rank has under way to other nodes of messages that leave in turn: two of them at least, as the next one's
// handshake takes a while, and so many bytes that a fast network is never idle. docs/algorithms.md has
// the figures.
constexpr std::uint64_t paced_from = 64 * 1024, bytes_under_way = 512 * 1024;
constexpr std::size_t messages_under_way = 2;

constexpr std::uint64_t cache_line = 64;
std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + cache_line - 1) / cache_line * cache_line; }

class Binder {
 public:
  Binder(const Schedule& schedule, const Semantics& semantics, int rank, const Placement& placement,
         BoundSchedule& bound)
      : schedule_(schedule),
        semantics_(semantics),
        rank_(rank),
        placement_(placement),
        sizes_(semantics, placement),
        bound_(bound) {}

  void run() {
    empty_lists();
    bound_.input_bytes = bound_.output_bytes = 0;
    bound_.element_bytes = placement_.element_bytes;
    bound_.channels_used = {};
    if (placement_.places != nullptr) bound_.grids = placement_.places->grids;
    place_scratch();
    // Of blocks with places of their own a rank may know the sizes of its own alone: others may have data.
    const bool keep_empty = placement_.places == nullptr && sizes_.all_empty();
    bound_.steps.reserve(schedule_.steps.size());
    for (const Step& step : schedule_.steps) add_step(step, keep_empty);
    bound_.collectives.resize(collectives_);
    link_successors();
    // All receives of an exchange are posted from the start; those of other plans may wait for what another rank passes
    // on, so that a send that waits for an earlier one could wait for ever.
    bound_.unordered = schedule_.after.empty() && semantics_.collective() == Collective::alltoall;
    if (bound_.unordered) pace_sends(bound_);
    collect_lanes();
  }

 private:
  // Not the collectives: each takes the place of a former one and so its memory.
  void empty_lists() {
    bound_.steps.clear();
    bound_.spans.clear();
    bound_.grids.clear();
    bound_.successors.clear();
    bound_.lanes.clear();
    bound_.lane_steps.clear();
  }

  void place_scratch() {
    std::uint64_t offset = 0;
    for (const BlockId block : schedule_.scratch) {
      scratch_offsets_.push_back(offset);
      offset += sizes_.bytes(block);
    }
    bound_.scratch_bytes = whole_lines(offset);
  }

  BlockId block_of(Space space, std::uint32_t cell) const {
    if (space == Space::scratch) return schedule_.scratch[cell];
    return space == Space::input ? semantics_.input_block(rank_, cell) : semantics_.output_block(rank_, cell);
  }

  std::uint64_t offset_of(Space space, std::uint32_t cell) const {
    if (space == Space::scratch) return scratch_offsets_[cell];
    const std::uint32_t cells = space == Space::input ? semantics_.input_cells(rank_) : semantics_.output_cells(rank_);
    return sizes_.buffer_offset(block_of(space, cell), cell, cells);
  }

  SpanList add_spans(RunList runs) {
    SpanList list{static_cast<std::uint32_t>(bound_.spans.size()), 0};
    for (std::uint32_t r = runs.first; r < runs.first + runs.count; ++r) {
      const CellRun& run = schedule_.runs[r];
      for (std::uint32_t k = 0; k < run.count; ++k) add_cell(list, run.space, run.cell(k));
    }
    return list;
  }

  void add_cell(SpanList& list, Space space, std::uint32_t cell) {
    const std::uint64_t bytes = sizes_.bytes(block_of(space, cell));
    if (bytes == 0) return;
    if (placement_.places != nullptr && space != Space::scratch)
      return add_placed(list, space,
                        (space == Space::input ? placement_.places->input : placement_.places->output)[cell], bytes);
    const std::uint64_t offset = offset_of(space, cell);
    note_extent(space, offset + bytes);
    add_span(list, {offset, bytes, space});
  }

  void add_placed(SpanList& list, Space space, const BlockPlaces::Cell& cell, std::uint64_t bytes) {
    const RunGrid& grid = bound_.grids[cell.grid];
    const std::uint64_t offset = grid.offset_of(cell.first);
    note_extent(space, grid.offset_of(cell.first + bytes - 1) + 1);
    const bool one_run = cell.first % grid.run + bytes <= grid.run;
    add_span(list, one_run ? BoundSpan{offset, bytes, space} : BoundSpan{cell.first, bytes, space, cell.grid});
  }

  void add_span(SpanList& list, const BoundSpan& span) {
    if (list.count > 0) {
      BoundSpan& last = bound_.spans.back();
      if (last.space == span.space && last.grid == span.grid && last.offset + last.bytes == span.offset) {
        last.bytes += span.bytes;
        return;
      }
    }
    bound_.spans.push_back(span);
    ++list.count;
  }

  void note_extent(Space space, std::uint64_t end) {
    if (space == Space::input) bound_.input_bytes = std::max(bound_.input_bytes, end);
    if (space == Space::output) bound_.output_bytes = std::max(bound_.output_bytes, end);
  }

  std::uint64_t total(SpanList list) const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < list.count; ++i) bytes += bound_.spans[list.first + i].bytes;
    return bytes;
  }

  bool copies_onto_itself(const Step& step) const {
    if (step.kind != StepKind::copy || !placement_.in_place) return false;
    std::vector<std::uint32_t> destinations;
    for_each_cell(step.destination, [&](Space, std::uint32_t cell) { destinations.push_back(cell); });
    std::size_t i = 0;
    bool same = true;
    for_each_cell(step.source, [&](Space space, std::uint32_t cell) {
      const auto output = space == Space::input ? semantics_.aliased_output(rank_, cell) : std::nullopt;
      same = same && output == destinations[i++];
    });
    return same;
  }

  template <class Visit>
  void for_each_cell(RunList list, Visit visit) const {
    for (std::uint32_t r = list.first; r < list.first + list.count; ++r) {
      const CellRun& run = schedule_.runs[r];
      for (std::uint32_t k = 0; k < run.count; ++k) visit(run.space, run.cell(k));
    }
  }

  void add_step(const Step& step, bool keep_empty) {
    BoundStep bound{
        .kind = step.kind,
        .channel = step.channel,
        .incoming_left = step.incoming_left,
        .rail = step.rail,
        .peer = step.peer,
        .collective =
            step.collective < 0 ? -1 : add_collective(schedule_.collectives[static_cast<std::size_t>(step.collective)]),
        .predecessors = step.after.count,
        .successors = {},
        .source = add_spans(step.source),
        .operand = add_spans(step.operand),
        .destination = add_spans(step.destination),
        .bytes = 0,
        .lane = -1};
    if (step.kind == StepKind::shm_collective)
      bound.bytes = bound_.collectives[static_cast<std::size_t>(bound.collective)].bytes;
    else
      bound.bytes =
          total(step.kind == StepKind::send || step.kind == StepKind::copy ? bound.source : bound.destination);
    if ((!is_local(step.kind) && bound.bytes == 0 && !keep_empty) || copies_onto_itself(step)) make_no_op(bound);
    bound_.steps.push_back(bound);
  }

  std::int32_t add_collective(const ShmCollective& step) {
    if (collectives_ == bound_.collectives.size()) bound_.collectives.emplace_back();
    BoundShmCollective& collective = bound_.collectives[collectives_];
    collective.kind = step.kind;
    collective.takes_own = step.takes_own;
    collective.lower_only = false;
    collective.root = step.root;
    const auto members = schedule_.collective_members.begin() + step.members.first;
    collective.members.assign(members, members + step.members.count);
    collective.self =
        static_cast<std::int32_t>(std::ranges::find(collective.members, rank_) - collective.members.begin());
    collective.bytes = 0;
    collective.piece_offsets.clear();
    std::uint32_t next = step.blocks.first;
    const auto take = [&](std::uint32_t blocks) {
      for (const std::uint32_t end = next + blocks; next < end; ++next)
        collective.bytes += sizes_.bytes(schedule_.collective_blocks[next]);
    };
    if (step.kind == ShmCollectiveKind::all_to_all) {
      take(step.blocks.count / step.members.count);
    } else if (has_pieces(step.kind)) {
      for (std::uint32_t i = 0; i < step.pieces.count; ++i) {
        collective.piece_offsets.push_back(collective.bytes);
        take(schedule_.collective_pieces[step.pieces.first + i]);
      }
      collective.piece_offsets.push_back(collective.bytes);
    } else {
      take(step.blocks.count);
    }
    return static_cast<std::int32_t>(collectives_++);
  }

  // A step that moves nothing stays as a local step of no bytes, because others may be ordered by it.
  static void make_no_op(BoundStep& step) {
    step.kind = StepKind::copy;
    step.peer = -1;
    step.collective = -1;
    step.source = step.operand = step.destination = {};
    step.bytes = 0;
  }

  void link_successors() {
    if (schedule_.after.empty()) return;
    std::vector<std::vector<std::uint32_t>> successors(schedule_.steps.size());
    for (std::uint32_t i = 0; i < schedule_.steps.size(); ++i) {
      const RunList after = schedule_.steps[i].after;
      for (std::uint32_t k = 0; k < after.count; ++k) successors[schedule_.after[after.first + k]].push_back(i);
    }
    for (std::uint32_t i = 0; i < successors.size(); ++i) {
      bound_.steps[i].successors = {static_cast<std::uint32_t>(bound_.successors.size()),
                                    static_cast<std::uint32_t>(successors[i].size())};
      bound_.successors.insert(bound_.successors.end(), successors[i].begin(), successors[i].end());
    }
  }

  void collect_lanes() {
    // Shared-memory collectives are a lane without a peer.
    using Key = std::tuple<ChannelKind, std::int8_t, std::int32_t, bool /* sends */, std::uint32_t /* step */>;
    std::vector<Key> keys;
    for (std::uint32_t i = 0; i < bound_.steps.size(); ++i) {
      const BoundStep& step = bound_.steps[i];
      if (is_local(step.kind)) continue;
      keys.emplace_back(step.channel, step.rail, step.peer, step.kind == StepKind::send, i);
      bound_.channels_used.add(step.channel);
    }
    std::ranges::sort(keys);
    const auto same_lane = [](const Key& a, const Key& b) {
      return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b) && std::get<2>(a) == std::get<2>(b) &&
             std::get<3>(a) == std::get<3>(b);
    };
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      if (i == 0 || !same_lane(keys[i - 1], keys[i])) bound_.lanes.push_back({{i, 0}});
      ++bound_.lanes.back().steps.count;
      const std::uint32_t step = std::get<4>(keys[i]);
      bound_.lane_steps.push_back(step);
      bound_.steps[step].lane = static_cast<std::int32_t>(bound_.lanes.size() - 1);
    }
  }

  const Schedule& schedule_;
  const Semantics& semantics_;
  int rank_;
  const Placement& placement_;
  BlockSizes sizes_;
  std::vector<std::uint64_t> scratch_offsets_;
  BoundSchedule& bound_;
  std::size_t collectives_ = 0;
};

void forget_pace(BoundSchedule& bound) {
  bound.successors.clear();
  for (BoundStep& step : bound.steps) {
    step.predecessors = 0;
    step.successors = {};
  }
}

constexpr auto no_step = static_cast<std::uint32_t>(-1);

bool is_paced(const BoundStep& step) {
  return step.kind == StepKind::send && step.bytes >= paced_from && traits(step.channel).crosses_nodes;
}

// Bits of those that messages leave in turn over; the lowest is of any_rail.
std::uint32_t paced_rails(const BoundSchedule& bound) {
  static_assert(any_rail == -1 && most_rails < 32);
  std::uint32_t rails = 0;
  for (const BoundStep& step : bound.steps)
    if (is_paced(step)) rails |= 1U << (step.rail + 1);
  return rails;
}

// Those that follow one step are said one after the other.
void follow(BoundSchedule& bound, std::uint32_t before, std::uint32_t step) {
  SpanList& successors = bound.steps[before].successors;
  if (successors.count == 0) successors.first = static_cast<std::uint32_t>(bound.successors.size());
  ++successors.count;
  ++bound.steps[step].predecessors;
  bound.successors.push_back(step);
}

// From `step` on; the number of steps where there is none.
std::uint32_t next_paced(const BoundSchedule& bound, int rail, std::uint32_t step) {
  while (step < bound.steps.size() && (bound.steps[step].rail != rail || !is_paced(bound.steps[step]))) ++step;
  return step;
}

// Each follows those that must be gone for it to leave and that no earlier one followed, or the last one followed.
void pace_rail(BoundSchedule& bound, int rail) {
  std::uint32_t first = next_paced(bound, rail, 0), followed = no_step;
  std::size_t messages = 0;  // under way, from `first` on, before the next one leaves
  std::uint64_t bytes = 0;   // of these
  for (std::uint32_t next = first; next < bound.steps.size(); next = next_paced(bound, rail, next + 1)) {
    const std::uint32_t last = followed;
    while (messages >= messages_under_way && bytes - bound.steps[first].bytes >= bytes_under_way) {
      bytes -= bound.steps[first].bytes;
      --messages;
      follow(bound, first, next);
      followed = std::exchange(first, next_paced(bound, rail, first + 1));
    }
    if (followed == last && last != no_step) follow(bound, last, next);
    ++messages;
    bytes += bound.steps[next].bytes;
  }
}

}  // namespace

BoundSchedule bind(const Schedule& schedule, const Semantics& semantics, int rank, const Placement& placement) {
  BoundSchedule bound;
  bind(schedule, semantics, rank, placement, bound);
  return bound;
}

void bind(const Schedule& schedule, const Semantics& semantics, int rank, const Placement& placement,
          BoundSchedule& bound) {
  Binder(schedule, semantics, rank, placement, bound).run();
}

// Each is awaited from the start, so that no order in which another rank sends can keep one waiting. All at once would
// share the ports unevenly: some ranks are done while others' ports still have much to take in. Messages that are bound
// to a rail wait for those of that rail alone: it has a port of its own.
void pace_sends(BoundSchedule& bound) {
  assert(bound.unordered);
  if (!bound.successors.empty()) forget_pace(bound);
  for (std::uint32_t rails = paced_rails(bound); rails != 0; rails &= rails - 1)
    pace_rail(bound, std::countr_zero(rails) - 1);
}

bool grows_evenly(const Semantics& semantics) {
  const bool cut = semantics.chunks() > 1 || (is_vector(semantics.collective()) && semantics.segments() > 1);
  return !cut && semantics.collective() != Collective::reshard;
}

void rebind(const Schedule& schedule, const Growth& growth, BoundSchedule& bound) {
  const auto grow = [&](std::uint64_t& bytes) {  // most are nothing or all of the data: without a division
    if (bytes == growth.bytes_before)
      bytes = growth.bytes;
    else if (bytes != 0)
      bytes = bytes / growth.bytes_before * growth.bytes;
  };
  for (BoundSpan& span : bound.spans) {
    grow(span.offset);
    grow(span.bytes);
  }
  for (BoundStep& step : bound.steps) grow(step.bytes);
  if (bound.unordered) pace_sends(bound);
  for (BoundShmCollective& collective : bound.collectives) {
    grow(collective.bytes);
    for (std::uint64_t& offset : collective.piece_offsets) grow(offset);
  }
  grow(bound.input_bytes);
  grow(bound.output_bytes);
  bound.scratch_bytes = whole_lines(schedule.scratch.size() * growth.bytes);
  bound.element_bytes = growth.element_bytes;
}

}  // namespace plait::plan
