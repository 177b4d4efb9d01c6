#include "plan/synthesis/level_state.h"

#include <cassert>

namespace plait {

namespace {

constexpr std::uint8_t bit(LevelStatus status) { return static_cast<std::uint8_t>(1u << static_cast<unsigned>(status)); }
constexpr std::uint8_t bits(LevelStatus one, LevelStatus other) { return bit(one) | bit(other); }

using enum LevelStatus;

// What an instruction finds outside its range.
struct Outside {
  bool rooted = false;
  bool unreduced_below = false;  // at a level deeper than the range
  bool counterparts = true;      // every rank of one group below has its partner in the others
};

Outside look_outside(const SynthesisTask& task, LevelState state, int first, int last) {
  Outside found;
  for (int level = 0; level < task.levels; ++level) {
    if (level >= first && level <= last) continue;
    const LevelStatus status = state.at(level);
    found.rooted |= status == LevelStatus::rooted;
    found.unreduced_below |= level > last && status == unreduced;
    const bool uneven = (task.uneven >> level & 1) != 0;
    if (level > last && uneven && status != scattered && status != LevelStatus::rooted) found.counterparts = false;
  }
  return found;
}

bool all_are(LevelState state, int first, int last, LevelStatus wanted) {
  for (int level = first; level <= last; ++level)
    if (state.at(level) != wanted) return false;
  return true;
}

// Pieces over several levels at once would be of unequal sizes.
bool pieces_are_even(const SynthesisTask& task, int first, int last) {
  if (task.owned_pieces || first == last) return true;
  for (int level = first; level <= last; ++level)
    if ((task.uneven >> level & 1) != 0) return false;
  return true;
}

bool may_end(const SynthesisTask& task, LevelStatus status) {
  return (task.goal >> static_cast<int>(status) & 1) != 0;
}

// Never both: what was gathered would only be scattered again.
bool may_gather(const SynthesisTask& task) {
  const bool begins_scattered = task.levels > 0 && task.start.at(0) == scattered;
  return task.extended && (may_end(task, LevelStatus::rooted) || begins_scattered);
}
bool may_scatter(const SynthesisTask& task) {
  const bool begins_rooted = task.levels > 0 && task.start.at(0) == LevelStatus::rooted;
  return task.extended && (may_end(task, scattered) || begins_rooted);
}

// Some level is rooted, the others full.
bool can_broadcast(LevelState state, int first, int last) {
  bool any = false;
  for (int level = first; level <= last; ++level) {
    if (state.at(level) == LevelStatus::rooted) any = true;
    else if (state.at(level) != full) return false;
  }
  return any;
}

std::optional<LevelStatus> result_of(const SynthesisTask& task, LevelState state, Instruct what, int first, int last,
                                     const Outside& outside) {
  const bool reduces = all_are(state, first, last, unreduced) && (!task.ordered || !outside.unreduced_below);
  const bool even = pieces_are_even(task, first, last);
  const bool idle_groups = task.extended || !outside.rooted;
  switch (what) {
    case Instruct::all_reduce:
      if (reduces) return full;
      break;
    case Instruct::reduce_scatter:
      if (reduces && even && !task.ordered) return scattered;
      break;
    case Instruct::reduce:
      if (reduces) return LevelStatus::rooted;
      break;
    case Instruct::all_gather:
      if (all_are(state, first, last, scattered) && even && idle_groups) return full;
      break;
    case Instruct::broadcast:
      if (can_broadcast(state, first, last) && idle_groups) return full;
      break;
    case Instruct::gather:
      if (may_gather(task) && all_are(state, first, last, scattered) && even) return LevelStatus::rooted;
      break;
    case Instruct::scatter:
      if (may_scatter(task) && all_are(state, first, last, LevelStatus::rooted) && even) return scattered;
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
  const Outside outside = look_outside(task, state, first, last);
  if (!outside.counterparts) return std::nullopt;
  const std::optional<LevelStatus> result = result_of(task, state, what, first, last, outside);
  if (!result) return std::nullopt;
  for (int level = first; level <= last; ++level) state.set(level, *result);
  return state;
}

}  // namespace plait
