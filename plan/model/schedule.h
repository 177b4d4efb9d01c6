// One rank's part of a plan: steps over blocks, with their order. Independent of the size of the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/channel_kind.h"
#include "plan/model/collective.h"

namespace plait::plan {

enum class Space : std::uint8_t { input, output, scratch };

// Rails are numbered as the ranks agreed on them; a message bound to none is dealt out over all by the channel.
inline constexpr std::int8_t any_rail = -1;
inline constexpr int most_rails = 8;

enum class StepKind : std::uint8_t {
  send,            // source -> peer
  recv,            // peer -> destination
  recv_reduce,     // destination = incoming op operand, or operand op incoming (see incoming_left)
  copy,            // destination = source
  reduce,          // destination = source op operand
  shm_collective,  // all ranks of a node in one operation of the channel (ShmCollective): source is what this rank
                   // gives, destination what it gets
};
std::string_view name(StepKind kind);
inline bool is_local(StepKind kind) { return kind == StepKind::copy || kind == StepKind::reduce; }

// What a shared-memory collective does with the members' data. Members lie in the order in which operands are combined.
enum class ShmCollectiveKind : std::uint8_t {
  all_reduce,      // each gives all blocks and gets all
  reduce,          // each gives all blocks, the root gets them
  reduce_scatter,  // each gives all blocks and gets its own piece
  broadcast,       // the root gives all blocks, the others get them
  all_gather,      // each gives its own piece and gets all
  gather,          // each gives its own piece, the root gets all
  scatter,         // the root gives all blocks, each gets its own piece
  all_to_all,      // each gives a piece to each and gets one from each
};
std::string_view name(ShmCollectiveKind kind);
inline bool reduces(ShmCollectiveKind kind) { return kind <= ShmCollectiveKind::reduce_scatter; }
// Whether the members' pieces are told apart.
inline bool has_pieces(ShmCollectiveKind kind) {
  return kind == ShmCollectiveKind::reduce_scatter ||
         (kind >= ShmCollectiveKind::all_gather && kind <= ShmCollectiveKind::scatter);
}

// `count` cells of one space, at equal distances.
struct CellRun {
  Space space;
  std::uint32_t first;
  std::uint32_t count;
  std::uint32_t apart = 1;
  std::uint32_t cell(std::uint32_t k) const { return first + k * apart; }
  bool operator==(const CellRun&) const = default;
};

// A list of runs: entries [first, first + count) of Schedule::runs. The bytes of a message are those of its runs, in
// order.
struct RunList {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const RunList&) const = default;
};

// An operation of several ranks of one node together. All of them list the same one, as their k-th.
struct ShmCollective {
  ShmCollectiveKind kind = ShmCollectiveKind::all_reduce;
  std::int32_t root = 0;  // index among the members, of a rooted kind
  bool takes_own = true;  // all_gather, gather, scatter: this rank's own piece is brought to the destination as well
  RunList members{};      // entries of Schedule::collective_members: ranks
  RunList blocks{};       // entries of Schedule::collective_blocks: all blocks, the pieces one after the other; of an
                          // all_to_all those that this rank gives
  RunList pieces{};       // entries of Schedule::collective_pieces: blocks of each member's piece; where has_pieces()
  bool operator==(const ShmCollective&) const = default;
};

struct Step {
  StepKind kind = StepKind::copy;
  ChannelKind channel = ChannelKind::shm;  // of send, recv, recv_reduce
  bool incoming_left = false;              // recv_reduce: the incoming value is the operator's left operand
  std::int8_t rail = any_rail;             // of a message over the network: the rail that it is bound to
  std::int32_t peer = -1;                  // rank in the communicator
  std::int32_t collective = -1;            // of a shared-memory collective: index into Schedule::collectives
  RunList source{};                        // send, copy, reduce
  RunList operand{};                       // recv_reduce, reduce
  RunList destination{};                   // recv, recv_reduce, copy, reduce
  RunList after{};                         // entries of Schedule::after: earlier steps that must be complete before
                                           // this one starts
  bool operator==(const Step&) const = default;
};

// Besides `after`, the sends to one peer over one channel and rail start in the order in which they are listed, and so
// do the receives from it: the k-th send meets the k-th receive. Shared-memory collectives start in their order as
// well. A step only names earlier steps in `after`.
struct Schedule {
  std::vector<Step> steps;
  std::vector<CellRun> runs;
  std::vector<std::uint32_t> after;
  std::vector<BlockId> scratch;  // the block whose size each scratch cell has
  std::vector<ShmCollective> collectives;
  std::vector<std::int32_t> collective_members;
  std::vector<BlockId> collective_blocks;
  std::vector<std::uint32_t> collective_pieces;
  std::vector<std::uint16_t> parts;  // by step: the part of the plan that it is of, where it can be run part by part
  bool operator==(const Schedule&) const = default;
};

std::string describe(const Schedule& schedule);  // one line a step, for people

}  // namespace plait::plan
