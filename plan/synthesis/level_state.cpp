#include "plan/synthesis/level_state.h"

#include <cassert>

namespace plait::plan {

namespace {

constexpr std::uint8_t bit(LevelStatus status) {
  return static_cast<std::uint8_t>(1u << static_cast<unsigned>(status));
}
constexpr std::uint8_t bits(LevelStatus one, LevelStatus other) { return bit(one) | bit(other); }

using enum LevelStatus;

// A state's bits are looked at all levels at once: two bits a level, `low` has the lower one of each.
constexpr unsigned low = 0x5555u;

constexpr unsigned mask_of(int first, int last) { return (1u << 2 * (last + 1)) - (1u << 2 * first); }
constexpr unsigned rooted_levels(unsigned state) { return state & state >> 1 & low; }
constexpr unsigned unreduced_levels(unsigned state) { return ~(state | state >> 1) & low; }
constexpr bool all_are(unsigned state, unsigned mask, LevelStatus wanted) {
  return (state & mask) == (low * static_cast<unsigned>(wanted) & mask);
}
static_assert(static_cast<int>(unreduced) == 0 && static_cast<int>(full) == 1 && static_cast<int>(scattered) == 2);

// Every rank of one group below the range has its partner in the others.
bool has_counterparts(const SynthesisTask& task, LevelState state, int last) {
  for (int level = last + 1; task.uneven != 0 && level < task.levels; ++level) {
    const LevelStatus status = state.at(level);
    if ((task.uneven >> level & 1) != 0 && status != scattered && status != LevelStatus::rooted) return false;
  }
  return true;
}

// Pieces over several levels at once would be of unequal sizes.
bool pieces_are_even(const SynthesisTask& task, int first, int last) {
  if (task.owned_pieces) return true;
  const unsigned levels = (1u << (last + 1)) - (1u << first);
  return ((first == last ? task.uncut : task.uneven) & levels) == 0;
}

bool may_end(const SynthesisTask& task, LevelStatus status) { return (task.goal >> static_cast<int>(status) & 1) != 0; }

// Never both: what was gathered would only be scattered again.
bool may_gather(const SynthesisTask& task) {
  const bool begins_scattered = task.levels > 0 && task.start.at(0) == scattered;
  return task.extended && (may_end(task, LevelStatus::rooted) || begins_scattered);
}
bool may_scatter(const SynthesisTask& task) {
  const bool begins_rooted = task.levels > 0 && task.start.at(0) == LevelStatus::rooted;
  return task.extended && (may_end(task, scattered) || begins_rooted);
}

std::optional<LevelStatus> result_of(const SynthesisTask& task, unsigned state, Instruct what, int first, int last) {
  const unsigned mask = mask_of(first, last), everything = mask_of(0, task.levels - 1);
  const unsigned below = everything & ~mask_of(0, last);
  const bool idle_groups = task.extended || (rooted_levels(state) & ~mask) == 0;
  const bool in_order = !task.ordered || (unreduced_levels(state) & below) == 0;
  switch (what) {
    case Instruct::all_reduce:
      if (all_are(state, mask, unreduced) && in_order) return full;
      break;
    case Instruct::reduce_scatter:
      if (all_are(state, mask, unreduced) && !task.ordered && pieces_are_even(task, first, last)) return scattered;
      break;
    case Instruct::reduce:
      if (all_are(state, mask, unreduced) && in_order) return LevelStatus::rooted;
      break;
    case Instruct::all_gather:
      if (all_are(state, mask, scattered) && idle_groups && pieces_are_even(task, first, last)) return full;
      break;
    case Instruct::broadcast: {
      const bool rooted_or_full = (state & low & mask) == (low & mask);
      if (rooted_or_full && (rooted_levels(state) & mask) != 0 && idle_groups) return full;
      break;
    }
    case Instruct::gather:
      if (all_are(state, mask, scattered) && may_gather(task) && pieces_are_even(task, first, last))
        return LevelStatus::rooted;
      break;
    case Instruct::scatter:
      if (all_are(state, mask, LevelStatus::rooted) && may_scatter(task) && pieces_are_even(task, first, last))
        return scattered;
      break;
  }
  return std::nullopt;
}

}  // namespace

SynthesisTask reduction_task(int levels) {
  assert(levels >= 0 && levels <= most_levels);
  SynthesisTask task;
  task.levels = levels;
  task.start = LevelState::all(levels, unreduced);
  task.goal = bit(full);
  return task;
}

SynthesisTask task_of(Collective collective, int levels, std::uint8_t uneven, bool ordered) {
  assert(collective != Collective::alltoall);
  SynthesisTask task = reduction_task(levels);
  task.extended = true;
  task.uneven = uneven;
  task.ordered = ordered;
  const auto from_to = [&](LevelStatus start, std::uint8_t goal) {
    task.start = LevelState::all(levels, start);
    task.goal = goal;
  };
  switch (collective) {
    case Collective::reduce:
      from_to(unreduced, bits(LevelStatus::rooted, full));
      break;
    case Collective::bcast:
      from_to(LevelStatus::rooted, bit(full));
      break;
    case Collective::allgather:
    case Collective::allgatherv:
      task.owned_pieces = true;
      from_to(scattered, bit(full));
      break;
    case Collective::gather:
      task.owned_pieces = true;
      from_to(scattered, bits(LevelStatus::rooted, full));
      break;
    case Collective::scatter:
      task.owned_pieces = true;
      from_to(LevelStatus::rooted, bits(scattered, full));
      break;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      task.owned_pieces = true;
      from_to(unreduced, bits(scattered, full));
      break;
    default:
      break;
  }
  return task;
}

std::optional<LevelState> apply(const SynthesisTask& task, LevelState state, Instruct what, int first, int last) {
  if (!has_counterparts(task, state, last)) return std::nullopt;
  const std::optional<LevelStatus> result = result_of(task, state.index(), what, first, last);
  if (!result) return std::nullopt;
  for (int level = first; level <= last; ++level) state.set(level, *result);
  return state;
}

}  // namespace plait::plan
