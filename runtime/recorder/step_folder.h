// A program's calls, folded into the step that it repeats, as they come: what is kept does not grow with their number.
//
// The last calls are kept in a window. Where the window's end repeats itself, at least three times and over half of
// what is kept, that is a step: each later one is compared with it call by call, and only its times are added up. What
// differs is counted and dropped; the step is met again where all of its calls came in a row. With marks (add_mark) a
// step is what lies between two of them, and nothing is looked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/layer.h"
#include "runtime/recorder/call_kind.h"

namespace plait::runtime {

struct FolderBounds {
  std::size_t window = 1u << 14;         // calls that a step is looked for in
  std::size_t calls_of_step = 1u << 10;  // longer ones are none
  std::size_t waits_of_call = 1u << 10;  // before one call: those to more operations are counted and dropped
  std::size_t steps = 8;                 // different ones that are known
};

// What makes calls the same: their kinds, and as long as that finds a step their sizes and the waits before them.
enum class Likeness : std::uint8_t { sizes_and_waits, waits, kinds };
inline constexpr int likeness_count = 3;

// A wait that ended before a call of the step.
struct FoldedWait {
  std::uint32_t call = 0;    // of the step: what it waited for ...
  bool of_previous = false;  // ... in the step before
  Measured computed;         // nanoseconds before it, since the program's last call or wait
  Measured waited;
};

struct FoldedCall {
  std::uint32_t kind = 0;
  Measured bytes;
  Measured computed;                // nanoseconds before it, since the program's last call or wait
  Measured inside;                  // the call itself
  Measured took;                    // from the call to where it was complete, or seen to be: of those that do not block
  std::vector<FoldedWait> waits{};  // before the call, in order
};

struct FoldedStep {
  std::vector<FoldedCall> calls;
  std::uint64_t times = 0, ns = 0;  // all of them
  Likeness likeness = Likeness::sizes_and_waits;
};

// Not thread-safe. Throws only where memory is short.
class StepFolder {
 public:
  explicit StepFolder(const FolderBounds& bounds = {}) : bounds_(bounds) {}

  // Returns the call's number, from 0 on. `kind`: of the caller's table.
  std::uint64_t add_call(std::uint32_t kind, std::uint64_t bytes, Span time);
  // A wait for that call ended. `took_ns`: from the call to its completion.
  void add_wait(std::uint64_t call, Span time, std::uint64_t took_ns);
  // A step ends and another one begins.
  void add_mark();
  // No more comes: what is left is looked at once more.
  void finish();

  // That which most of the time went to; nullptr: none was found.
  const FoldedStep* step() const;
  std::uint64_t calls() const { return calls_; }
  std::uint64_t folded_calls() const;
  std::uint64_t lost_waits() const { return lost_waits_; }
  bool marked() const { return marked_; }
  std::size_t bytes() const;  // of memory

 private:
  struct Wait {
    std::uint64_t call = 0, computed = 0, waited = 0, took = 0;
  };
  struct Event {
    std::uint32_t kind = 0;
    std::uint64_t number = 0, bytes = 0, computed = 0, begin_ns = 0, inside = 0;
    std::vector<Wait> waits{};
  };
  struct Known {
    FoldedStep step;
    std::vector<std::uint64_t> tokens;  // of its calls
    std::size_t waits = 0;              // different ones, of all calls
    std::size_t met = 0;                // while no step is followed: so many of its calls were the last ones
    std::uint64_t next_number = 0;      // that the call after the last one folded has
  };

  static constexpr std::size_t none = ~std::size_t{0};

  void append(Event event);
  void follow();
  void meet_again();
  void search();
  bool take_up(std::size_t length, std::size_t first, Likeness likeness, const std::vector<std::uint64_t>& tokens);
  std::size_t know(std::size_t first, std::size_t length, Likeness likeness);
  void fold(Known& known, std::size_t first);
  void fold_waits(Known& known, FoldedCall& call, const Event& event, std::uint64_t step_begin);
  void forget(std::size_t events);
  static std::uint64_t token(const Event& event, Likeness likeness);

  FolderBounds bounds_;
  std::uint64_t calls_ = 0, lost_waits_ = 0, last_end_ns_ = 0;
  std::vector<Wait> waits_;    // since the last call
  std::vector<Event> events_;  // the window; those of the step that is followed, or between marks, are its last ones
  std::vector<Known> known_;
  std::size_t search_at_ = 16;  // events
  std::size_t followed_ = none;
  std::size_t open_ = 0;  // calls so far of the step that is followed, or since the mark
  bool marked_ = false;
};

}  // namespace plait::runtime
