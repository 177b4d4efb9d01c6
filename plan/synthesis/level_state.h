// P²'s semantics by level: which data each rank holds, as one status a level instead of a matrix a rank.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/model/collective.h"
#include "plan/model/instruct.h"

namespace plait::plan {

// How the data stands along one level.
enum class LevelStatus : std::uint8_t {
  unreduced,  // every child has its own contribution
  full,       // reduced, and every child has all of it
  scattered,  // reduced, and each child has its piece
  rooted,     // reduced, and only child 0 has it
};

// One status a level; two bits each. A value type of two bytes.
class LevelState {
 public:
  static LevelState all(int levels, LevelStatus status) {
    LevelState state;
    for (int level = 0; level < levels; ++level) state.set(level, status);
    return state;
  }
  LevelStatus at(int level) const { return static_cast<LevelStatus>(bits_ >> (2 * level) & 3u); }
  void set(int level, LevelStatus status) {
    bits_ = static_cast<std::uint16_t>((bits_ & ~(3u << (2 * level))) | static_cast<unsigned>(status) << (2 * level));
  }
  std::uint16_t index() const { return bits_; }
  bool operator==(const LevelState&) const = default;

 private:
  std::uint16_t bits_ = 0;
};

// What a synthesis may do and where it begins and ends.
struct SynthesisTask {
  int levels = 0;
  LevelState start;
  std::uint8_t goal = 0;  // bit set of the statuses that each level may end with
  bool extended = false;  // gather and scatter as well, and instructions whose idle groups (those that hold nothing)
                          // take no part: for the other collectives than the paper's reductions
  bool ordered = false;   // the operator does not commute: inner levels are reduced before outer ones, never scattered
  bool owned_pieces = false;  // the collective says which rank ends (or begins) with which piece
  std::uint8_t uneven = 0;    // bit set of levels whose groups differ in size
  std::uint8_t uncut = 0;  // bit set of levels that must not be scattered: no few pieces are even for all their groups

  bool provable = false;  // only instructions in groups that are small_enough_to_prove()

  bool is_goal(LevelState state) const {
    for (int level = 0; level < levels; ++level)
      if ((goal >> static_cast<int>(state.at(level)) & 1) == 0) return false;
    return true;
  }
};

// The paper's reduction: every level from unreduced to full.
SynthesisTask reduction_task(int levels);
// The task of a collective (barrier counts as allreduce; not alltoall, which has none).
SynthesisTask task_of(Collective collective, int levels, std::uint8_t uneven, bool ordered);

// The state after `what` over levels first..last; nothing when it is not valid there (P², section 3.3, by level; for
// uneven levels: data below the range must be scattered or rooted, since the groups have no counterparts otherwise).
std::optional<LevelState> apply(const SynthesisTask& task, LevelState state, Instruct what, int first, int last);

}  // namespace plait::plan
