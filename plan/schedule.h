// One rank's part of a plan: steps over blocks, with their order. Independent of the size of the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/collective.h"

namespace plait {

enum class Space : std::uint8_t { input, output, scratch };
enum class ChannelKind : std::uint8_t { shm, ucx, mpi };
inline constexpr int channel_kinds = 3;
std::string_view name(ChannelKind kind);

// Rails are numbered as the ranks agreed on them; a message bound to none is dealt out over all by the channel.
inline constexpr std::int8_t any_rail = -1;
inline constexpr int most_rails = 8;

enum class StepKind : std::uint8_t {
  send,         // source -> peer
  recv,         // peer -> destination
  recv_reduce,  // destination = incoming op operand, or operand op incoming (see incoming_left)
  copy,         // destination = source
  reduce,       // destination = source op operand
};
std::string_view name(StepKind kind);

// `count` consecutive cells of one space.
struct CellRun {
  Space space;
  std::uint32_t first;
  std::uint32_t count;
  bool operator==(const CellRun&) const = default;
};

// A list of runs: entries [first, first + count) of Schedule::runs. The bytes of a message are those of its runs, in
// order.
struct RunList {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Step {
  StepKind kind = StepKind::copy;
  ChannelKind channel = ChannelKind::shm;  // of send, recv, recv_reduce
  bool incoming_left = false;              // recv_reduce: the incoming value is the operator's left operand
  std::int8_t rail = any_rail;             // of a message over the network: the rail that it is bound to
  std::int32_t peer = -1;                  // rank in the communicator
  RunList source{};                        // send, copy, reduce
  RunList operand{};                       // recv_reduce, reduce
  RunList destination{};                   // recv, recv_reduce, copy, reduce
  RunList after{};                         // entries of Schedule::after: earlier steps that must be complete before
                                           // this one starts
};

// Besides `after`, the sends to one peer over one channel and rail start in the order in which they are listed, and so do
// the receives from it: the k-th send meets the k-th receive. A step only names earlier steps in `after`.
struct Schedule {
  std::vector<Step> steps;
  std::vector<CellRun> runs;
  std::vector<std::uint32_t> after;
  std::vector<BlockId> scratch;  // the block whose size each scratch cell has
};

std::string describe(const Schedule& schedule);  // one line a step, for people

}  // namespace plait
