#include "runtime/arguments/moved_data.h"

#include <algorithm>
#include <limits>

#include "runtime/arguments/block_counts.h"
#include "runtime/arguments/regions.h"

namespace plait::runtime {
namespace {

// The `segment`-th of `segments` equal parts.
Region part(const Region& whole, int segment, int segments) {
  Region region = whole;
  region.count = whole.count / static_cast<std::size_t>(segments);
  region.bytes = whole.bytes / static_cast<std::size_t>(segments);
  region.address = whole.address + static_cast<std::ptrdiff_t>(region.count) * whole.type->extent * segment;
  return region;
}

// This rank's segment of the output is its input already.
void place_input_in_output(Request& request, int rank, int segments) {
  request.input = part(request.output, rank, segments);
  request.sharing = Sharing::input_in_output;
  request.own_offset = request.input.bytes * static_cast<std::size_t>(rank);
}

}  // namespace

const char* prepare_bcast(const Communicator& communicator, Request& request, const void* address, std::ptrdiff_t count,
                          const Layout* layout, int root) {
  if (!is_rank(root, communicator)) return reasons::wrong_argument;
  Region& region = communicator.rank == root ? request.input : request.output;
  if (!describe(region, {address, count, layout})) return reasons::wrong_argument;
  request.call.root = root;
  request.call.count = region.bytes;
  return unless_empty(region.bytes);
}

const char* prepare_allgather(const Communicator& communicator, Request& request, const Elements& send,
                              const Elements& receive) {
  const int ranks = communicator.ranks;
  if (!describe(request.output, receive, ranks)) return reasons::wrong_argument;
  request.call.count = request.output.bytes / static_cast<std::size_t>(ranks);
  if (is_in_place(send.address))
    place_input_in_output(request, communicator.rank, ranks);
  else if (!describe(request.input, send) || request.input.bytes != request.call.count)
    return reasons::wrong_argument;
  return unless_empty(request.call.count);
}

const char* prepare_gather(const Communicator& communicator, Request& request, const Elements& send,
                           const Elements& receive, int root) {
  if (!is_rank(root, communicator)) return reasons::wrong_argument;
  request.call.root = root;
  if (communicator.rank == root) return prepare_allgather(communicator, request, send, receive);
  if (!describe(request.input, send)) return reasons::wrong_argument;
  request.call.count = request.input.bytes;
  return unless_empty(request.call.count);
}

const char* prepare_scatter(const Communicator& communicator, Request& request, const Elements& send,
                            const Elements& receive, int root) {
  if (!is_rank(root, communicator)) return reasons::wrong_argument;
  request.call.root = root;
  const auto ranks = static_cast<std::size_t>(communicator.ranks);
  const bool at_root = communicator.rank == root;
  if (at_root && !describe(request.input, send, communicator.ranks)) return reasons::wrong_argument;
  if (at_root && is_in_place(receive.address)) {
    request.call.count = request.input.bytes / ranks;
    request.sharing = Sharing::output_in_input;
    request.own_offset = request.call.count * static_cast<std::size_t>(root);
    return unless_empty(request.call.count);
  }
  if (!describe(request.output, receive)) return reasons::wrong_argument;
  request.call.count = request.output.bytes;
  if (at_root && request.input.bytes != request.output.bytes * ranks) return reasons::wrong_argument;
  return unless_empty(request.call.count);
}

const char* prepare_alltoall(const Communicator& communicator, Request& request, const Elements& send,
                             const Elements& receive) {
  if (!describe(request.output, receive, communicator.ranks)) return reasons::wrong_argument;
  request.call.count = request.output.bytes / static_cast<std::size_t>(communicator.ranks);
  if (is_in_place(send.address)) {
    request.input = request.output;
    request.copy_input = true;
  } else if (!describe(request.input, send, communicator.ranks) || request.input.bytes != request.output.bytes) {
    return reasons::wrong_argument;
  }
  return unless_empty(request.call.count);
}

// ---- Segments that lie apart ----

namespace {

// Where the segments of a contiguous type lie, from the lowest one on; nothing to be said when they follow each other.
// The displacement of an empty segment is not significant.
void place_directly(const Communicator& communicator, Request& request) {
  Region& output = request.output;
  const auto ranks = static_cast<std::size_t>(communicator.ranks);
  std::ptrdiff_t lowest = std::numeric_limits<std::ptrdiff_t>::max();
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (output.segment_count(rank) > 0) lowest = std::min(lowest, output.segment_displacement(rank));
  output.address += output.type->extent * lowest;
  request.lists->displacements.resize(request.lists->counts.size());
  std::size_t dense = 0;
  bool following = true;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::ptrdiff_t offset = output.segment_displacement(rank) - lowest;
    const bool empty = output.segment_count(rank) == 0;
    request.lists->displacements[rank] = empty ? dense : static_cast<std::size_t>(offset * output.type->extent);
    following &= request.lists->displacements[rank] == dense;
    dense += request.lists->counts[rank];
  }
  if (!following) request.displacements = request.lists->displacements.data();
}

// In whose memory they lie: the first that is not empty says it for all. Precondition: there is one.
void find_device_of_segments(Region& region) {
  std::size_t first = 0;
  while (region.segment_count(first) == 0) ++first;
  region.device = device_under(region.address + region.type->extent * region.segment_displacement(first), *region.type);
}

void place_own_segment(const Communicator& communicator, Request& request) {
  const auto rank = static_cast<std::size_t>(communicator.rank);
  const Region& output = request.output;
  move_all(request.input, output.address + output.type->extent * output.segment_displacement(rank),
           output.segment_count(rank), *output.type);
  request.input.device = output.device;
  request.sharing = Sharing::input_in_output;
  for (std::size_t before = 0; before < rank; ++before) request.own_offset += request.lists->counts[before];
}

}  // namespace

const char* prepare_allgatherv(const Communicator& communicator, Request& request, const Elements& send,
                               const Segments& receive) {
  const Layout* layout = receive.layout;
  if (layout == nullptr || !receive.displacements.given() ||
      !take_counts(communicator, request, receive.counts, layout->size))
    return reasons::wrong_argument;
  const std::size_t all = sum_of_counts(request);
  if (all == 0) return reasons::no_data;
  Region& output = request.output;
  move_all(output, receive.address, all / layout->size, *layout);
  output.segment_counts = receive.counts.numbers;
  output.counts_kind = receive.counts.kind;
  output.segment_displacements = receive.displacements.numbers;
  output.displacements_kind = receive.displacements.kind;
  output.segments = communicator.ranks;
  if (!is_sound(output)) return reasons::wrong_argument;
  find_device_of_segments(output);
  const std::size_t own = request.lists->counts[static_cast<std::size_t>(communicator.rank)];
  if (is_in_place(send.address))
    place_own_segment(communicator, request);
  else if (!describe(request.input, send) || request.input.bytes != own)
    return reasons::wrong_argument;
  if (!output.staged()) place_directly(communicator, request);
  return eligible;
}

}  // namespace plait::runtime
