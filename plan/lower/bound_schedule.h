// A schedule bound to the sizes of one call: steps over bytes, in the form the engine runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/lower/placement.h"
#include "plan/model/schedule.h"

namespace plait::plan {

inline constexpr std::uint32_t no_grid = UINT32_MAX;

struct BoundSpan {
  std::uint64_t offset;  // bytes from the base of its space; in a grid: the first of the grid's bytes
  std::uint64_t bytes;
  Space space;
  std::uint32_t grid = no_grid;  // index into BoundSchedule::grids
};
static_assert(sizeof(BoundSpan) == 24);

struct SpanList {
  std::uint32_t first = 0;  // into BoundSchedule::spans
  std::uint32_t count = 0;
};

// A shared-memory collective over bytes. The members' pieces follow each other in the order of the members.
struct BoundShmCollective {
  ShmCollectiveKind kind = ShmCollectiveKind::all_reduce;
  bool takes_own = true;
  bool lower_only = false;            // of an all_gather that is done at once: a member gets only what lower ranks give
  std::int32_t root = 0;              // index among the members
  std::int32_t self = 0;              // likewise
  std::vector<std::int32_t> members;  // ranks
  std::uint64_t bytes = 0;            // of the vector, or of all pieces together; of an all_to_all: of one pair's piece
  std::vector<std::uint64_t> piece_offsets;  // where has_pieces(): of each member's piece, and the end
};

struct BoundStep {
  StepKind kind;
  ChannelKind channel;
  bool incoming_left;
  std::int8_t rail;
  std::int32_t peer;
  std::int32_t collective;     // index into BoundSchedule::collectives; -1
  std::uint32_t predecessors;  // steps that must complete before this one starts
  SpanList successors;         // into BoundSchedule::successors: steps that wait for this one
  SpanList source, operand, destination;
  std::uint64_t bytes;  // of the message, or of the copy
  std::int32_t lane;    // send, recv, recv_reduce, collective: index into BoundSchedule::lanes; -1 for local steps
};

// The sends to, or the receives from, one peer over one channel and rail, or the shared-memory collectives: their order
// of starting.
struct Lane {
  SpanList steps;  // into BoundSchedule::lane_steps
};

struct BoundSchedule {
  std::vector<BoundStep> steps;
  std::vector<BoundSpan> spans;
  std::vector<RunGrid> grids;  // of a reshard
  std::vector<std::uint32_t> successors;
  std::vector<Lane> lanes;
  std::vector<std::uint32_t> lane_steps;
  std::vector<BoundShmCollective> collectives;
  std::uint64_t scratch_bytes = 0;
  std::uint64_t input_bytes = 0;  // from the buffer's base to the end of the last byte touched
  std::uint64_t output_bytes = 0;
  std::size_t element_bytes = 1;  // messages are cut only at multiples of it
  ChannelSet channels_used;
  bool unordered = false;  // an exchange's; no step waits for another one but by pace_sends()
};

// `rank` is whose schedule it is. Adjacent spans are merged; messages of no bytes are dropped on both sides (except
// where the whole call has none: barrier); copies onto themselves are dropped.
BoundSchedule bind(const Schedule& schedule, const Semantics& semantics, int rank, const Placement& placement);
// The same, into one that was for another call: it keeps its memory.
void bind(const Schedule& schedule, const Semantics& semantics, int rank, const Placement& placement,
          BoundSchedule& bound);

// Of an exchange in which no step waits for another one, on any rank that something is sent to: long messages to other
// nodes leave a few at a time instead of all at once, in the order of the steps, over each rail by itself. bind() and
// rebind() have done so. Allocates at most for `successors`.
void pace_sends(BoundSchedule& bound);

// Whether a plan's schedules grow with the data: neither the vector nor the segments are cut, so that all that is bound
// to a call without lists (counts, displacements, places) is a multiple of its bytes: of the vector, or of a segment.
bool grows_evenly(const Semantics& semantics);
// Makes of what was bound to such a call of `bytes_before` what bind() would make of one of `bytes`, in the same place.
// Neither is 0. Without a look at each block: for calls whose length is ever new.
struct Growth {
  std::uint64_t bytes_before, bytes;
  std::size_t element_bytes;
};
void rebind(const Schedule& schedule, const Growth& growth, BoundSchedule& bound);

}  // namespace plait::plan
