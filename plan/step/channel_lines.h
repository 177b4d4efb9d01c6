// Where each channel stands in a step's schedule: which piece of which call it runs next (Mahajan et al., NSDI '23,
// Pseudocode 2). Pure state, the same on all ranks once they have run the same pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/status.h"
#include "plan/model/layer.h"
#include "plan/step/schedule_file.h"

namespace plait::plan::step {

// Of all iterations of a program, those of the schedule's operations: operation o of iteration i is call
// i * operations + o.
struct CallPiece {
  std::uint64_t call = 0;
  int piece = 0;
  bool operator==(const CallPiece&) const = default;
};

class ChannelLines {
 public:
  // Of a schedule with operations.
  explicit ChannelLines(const StepSchedule& schedule);

  int channels() const { return static_cast<int>(lines_.size()); }
  // Of the channels' bits, those that a piece is on.
  std::uint32_t channels_of(int operation, int piece) const {
    return channels_of_[static_cast<std::size_t>(operation)][static_cast<std::size_t>(piece)];
  }
  std::uint64_t first_call(std::uint64_t iteration) const { return iteration * operations_; }
  std::uint64_t iteration_of(std::uint64_t call) const { return call / operations_; }
  int operation_of(std::uint64_t call) const { return static_cast<int>(call % operations_); }

  // From the begin of this iteration, with nothing before it: pieces of earlier ones are left out.
  void begin(std::uint64_t iteration);
  // Pieces of this call and all later ones are left out from now on; none of them has run.
  void end_before(std::uint64_t call);

  // What the channel runs next; nothing: no more. Whether its call has been made is not known here.
  std::optional<CallPiece> head(int channel) const;
  // It has run.
  void pass(int channel);
  // Whether that piece, which is on the channel and has not run, waits there behind another one.
  bool behind_head(int channel, const CallPiece& piece) const;

  // Where the piece stands in the order of the first of its channels.
  std::size_t place_of(int operation, int piece) const;

 private:
  struct Line {
    std::vector<ScheduledPiece> order;
    std::size_t next = 0;
    std::int64_t round = 0;  // since the first iteration; a piece that is ahead runs in an earlier round than its call
    bool over = false;
  };
  std::optional<std::uint64_t> call_at(const Line& line, std::size_t place, std::int64_t round) const;
  void settle(Line& line) const;

  std::uint64_t operations_;
  std::vector<Line> lines_;
  std::vector<std::vector<std::uint32_t>> channels_of_;          // by operation and piece
  std::vector<std::vector<std::vector<std::size_t>>> place_of_;  // by channel, operation and piece: in its order
  std::vector<bool> overtakes_;                                  // by operation
  std::uint64_t first_iteration_ = 0;
  std::uint64_t end_;  // calls from this one on are left out
};

// Whether pieces wait for each other for ever once all calls are made: by operation and piece, `after`: pieces of the
// same operation that must end before. Fails (invalid) with two of them.
Status check_order(const StepSchedule& schedule, const std::vector<std::vector<std::vector<int>>>& after);

}  // namespace plait::plan::step
