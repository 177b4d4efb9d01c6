#include "plugin/mpi/call/arguments.h"

#include <algorithm>
#include <limits>

#include "plugin/layer.h"
#include "plugin/mpi/call/mpi_arguments.h"
#include "plugin/mpi/communicator/call_space.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/types/mpi_caller.h"
#include "plugin/mpi/types/predefined_types.h"
#include "plugin/mpi/types/types.h"
#include "runtime/execution/device_data.h"
#include "runtime/job/reasons.h"

namespace plait::plugin {
namespace {

// Why a call is not eligible. A rank whose arguments are wrong hands them to the host alone, which is the error that
// the program then sees; all other reasons are the same on all ranks.
constexpr const char* wrong = reasons::wrong_argument;
constexpr const char* no_data = reasons::no_data;
constexpr const char* derived_type = reasons::derived_type;
constexpr const char* undefined = reasons::undefined_operator;
constexpr const char* long_element = reasons::long_element;

constexpr std::size_t max_element_bytes = 4096;  // slots and chunks hold many elements of this size

// ---- Regions ----

// Data that is only moved: it travels as the bytes of its type signature. Sets a fresh region in place: copies of it
// show in the time of a small call.
void move_all(Region& region, const void* address, std::size_t count, const Layout& type) {
  region.address = static_cast<std::byte*>(const_cast<void*>(address));
  region.count = count;
  region.type = &type;
  region.bytes = count * type.size;
  region.direct = type.contiguous;
}

// Where the data lie. The rest of what is known of the region comes first.
void find_device(Region& region) {
  if (region.bytes == 0) return;
  std::byte* address = region.address;
  if (region.segment_displacements != nullptr) {
    const int* last = region.segment_counts + region.segments;
    const auto first = std::find_if(region.segment_counts, last, [](int count) { return count > 0; });
    if (first == last) return;
    address += region.type->extent * region.segment_displacements[first - region.segment_counts];
  }
  region.device = device_under(address, *region.type);
}

// Whether an address can be that of a region's data. MPI_BOTTOM belongs to types that hold the addresses themselves.
bool sound(const Region& region) {
  if (region.address == MPI_IN_PLACE) return false;
  return region.address != nullptr || !region.direct || region.bytes == 0;
}

struct TypedElements {
  const void* address;
  int count;
  MPI_Datatype type;
};

// `segments` times the arguments' data, which is the request's input or output. False when the host must check them.
bool describe(Request& request, Region& region, const TypedElements& elements, int segments = 1) {
  if (elements.count < 0) return false;
  CallSpace& space = space_of(request);
  const Datatype* type = find_datatype(elements.type, &region == &request.input ? space.input_type : space.output_type);
  if (type == nullptr) return false;
  const std::size_t count = static_cast<std::size_t>(elements.count) * static_cast<std::size_t>(segments);
  move_all(region, elements.address, count, *type);
  if (!sound(region)) return false;
  find_device(region);
  return true;
}

// The `segment`-th of `segments` equal parts.
Region part(const Region& whole, int segment, int segments) {
  Region region = whole;
  region.count = whole.count / static_cast<std::size_t>(segments);
  region.bytes = whole.bytes / static_cast<std::size_t>(segments);
  region.address = whole.address + static_cast<std::ptrdiff_t>(region.count) * whole.type->extent * segment;
  return region;
}

const char* unless_empty(std::size_t bytes) { return bytes == 0 ? no_data : eligible; }

// This rank's segment of the output is its input already.
void place_input_in_output(Request& request, int rank, int segments) {
  request.input = part(request.output, rank, segments);
  request.sharing = Sharing::input_in_output;
  request.own_offset = request.input.bytes * static_cast<std::size_t>(rank);
}

// ---- Reductions ----

struct Operands {
  const void* send;
  void* receive;
  MPI_Datatype type;
  MPI_Op op;
};

// How elements are combined, and how they travel: of a predefined type as they lie in memory, holes included, else
// packed.
const char* combine(Request& request, const Datatype& type, MPI_Op op) {
  if (!usable_in_reductions(op)) return wrong;
  if (const std::optional<Op> predefined = predefined_op(op)) {
    if (!type.predefined) return derived_type;
    const Reducer& reducer = type.reducers[static_cast<std::size_t>(*predefined)];
    if (reducer.apply == nullptr) return undefined;
    request.reducer = &reducer;
    request.call.element_bytes = static_cast<std::size_t>(type.extent);
    return eligible;
  }
  if (type.size == 0) return no_data;
  if (type.size > max_element_bytes) return long_element;
  int commutative = 0;
  if (PMPI_Op_commutative(op, &commutative) != MPI_SUCCESS) return wrong;
  request.call.commutative = commutative != 0;
  request.call.element_bytes = type.size;
  UserOperator& user = request.lists->user;
  user.start(operator_handle(op), type);
  request.user = &user;
  request.reducer = &user.reducer();
  return eligible;
}

void place(const Request& request, Region& region, const void* address, std::size_t count, const Layout& type) {
  move_all(region, address, count, type);
  region.bytes = count * request.call.element_bytes;
  region.direct = type.contiguous || request.user == nullptr;
}

struct Lengths {
  std::size_t input, output;  // elements
  bool has_output = true;     // this rank gets a result
  bool whole = true;          // of all the input: in place, each result has its operand's address
};

// The regions of a reduction whose operator and call are settled. Programs that pass one address for both buffers mean
// MPI_IN_PLACE.
bool place_operands(Request& request, const Operands& operands, const Datatype& type, const Lengths& lengths) {
  const bool in_place = operands.send == MPI_IN_PLACE || operands.send == operands.receive;
  if (operands.send == MPI_IN_PLACE && !lengths.has_output) return false;
  if (lengths.has_output) {
    place(request, request.output, operands.receive, lengths.output, type);
    if (!sound(request.output)) return false;
    find_device(request.output);
  }
  if (!in_place || !lengths.has_output) {
    place(request, request.input, operands.send, lengths.input, type);
  } else if (lengths.whole) {
    request.input = request.output;
    request.sharing = Sharing::input_in_output;
  } else {
    place(request, request.input, operands.receive, lengths.input, type);
    request.copy_input = true;
  }
  if (!sound(request.input)) return false;
  if (request.sharing == Sharing::none) find_device(request.input);
  return true;
}

const char* prepare_vector(Request& request, const Operands& operands, int count, bool has_output) {
  const Datatype* type = find_datatype(operands.type);
  if (type == nullptr || count < 0) return wrong;
  request.call.count = static_cast<std::size_t>(count);
  if (const char* reason = combine(request, *type, operands.op)) return reason;
  if (!place_operands(request, operands, *type, {request.call.count, request.call.count, has_output, true}))
    return wrong;
  return unless_empty(request.input.bytes);
}

const char* prepare_shares(const Communicator& communicator, Request& request, const Operands& operands, int count) {
  const Datatype* type = find_datatype(operands.type);
  if (type == nullptr || count < 0) return wrong;
  const auto share = static_cast<std::size_t>(count);
  request.call.count = share;
  if (const char* reason = combine(request, *type, operands.op)) return reason;
  const std::size_t all = share * static_cast<std::size_t>(communicator.ranks);
  if (!place_operands(request, operands, *type, {all, share, true, false})) return wrong;
  return unless_empty(request.input.bytes);
}

// Counts by rank, times `unit`, into the communicator's list. False when one is negative.
bool take_counts(const Communicator& communicator, Request& request, const int counts[], std::size_t unit) {
  if (counts == nullptr) return false;
  request.lists->counts.resize(static_cast<std::size_t>(communicator.ranks));
  for (int rank = 0; rank < communicator.ranks; ++rank) {
    if (counts[rank] < 0) return false;
    request.lists->counts[static_cast<std::size_t>(rank)] = static_cast<std::size_t>(counts[rank]) * unit;
  }
  request.call.counts = request.lists->counts.data();
  return true;
}

std::size_t sum(const std::vector<std::size_t>& values) {
  std::size_t all = 0;
  for (const std::size_t value : values) all += value;
  return all;
}

const char* prepare_uneven_shares(const Communicator& communicator, Request& request, const Operands& operands,
                                  const int counts[]) {
  const Datatype* type = find_datatype(operands.type);
  if (type == nullptr || !take_counts(communicator, request, counts, 1)) return wrong;
  if (const char* reason = combine(request, *type, operands.op)) return reason;
  const std::size_t all = sum(request.lists->counts);
  const std::size_t own = request.lists->counts[static_cast<std::size_t>(communicator.rank)];
  if (!place_operands(request, operands, *type, {all, own, true, false})) return wrong;
  return unless_empty(request.input.bytes);
}

// ---- Data that is moved ----

const char* prepare_bcast(const Communicator& communicator, Request& request, const TypedElements& data, int root) {
  if (!is_rank(root, communicator)) return wrong;
  Region& region = communicator.rank == root ? request.input : request.output;
  if (!describe(request, region, data)) return wrong;
  request.call.root = root;
  request.call.count = region.bytes;
  return unless_empty(region.bytes);
}

const char* prepare_allgather(const Communicator& communicator, Request& request, const TypedElements& send,
                              const TypedElements& receive) {
  const int ranks = communicator.ranks;
  if (!describe(request, request.output, receive, ranks)) return wrong;
  request.call.count = request.output.bytes / static_cast<std::size_t>(ranks);
  if (send.address == MPI_IN_PLACE)
    place_input_in_output(request, communicator.rank, ranks);
  else if (!describe(request, request.input, send) || request.input.bytes != request.call.count)
    return wrong;
  return unless_empty(request.call.count);
}

const char* prepare_gather(const Communicator& communicator, Request& request, const TypedElements& send,
                           const TypedElements& receive, int root) {
  if (!is_rank(root, communicator)) return wrong;
  request.call.root = root;
  if (communicator.rank == root) return prepare_allgather(communicator, request, send, receive);
  if (!describe(request, request.input, send)) return wrong;
  request.call.count = request.input.bytes;
  return unless_empty(request.call.count);
}

const char* prepare_scatter(const Communicator& communicator, Request& request, const TypedElements& send,
                            const TypedElements& receive, int root) {
  if (!is_rank(root, communicator)) return wrong;
  request.call.root = root;
  const auto ranks = static_cast<std::size_t>(communicator.ranks);
  const bool at_root = communicator.rank == root;
  if (at_root && !describe(request, request.input, send, communicator.ranks)) return wrong;
  if (at_root && receive.address == MPI_IN_PLACE) {
    request.call.count = request.input.bytes / ranks;
    request.sharing = Sharing::output_in_input;
    request.own_offset = request.call.count * static_cast<std::size_t>(root);
    return unless_empty(request.call.count);
  }
  if (!describe(request, request.output, receive)) return wrong;
  request.call.count = request.output.bytes;
  if (at_root && request.input.bytes != request.output.bytes * ranks) return wrong;
  return unless_empty(request.call.count);
}

const char* prepare_alltoall(const Communicator& communicator, Request& request, const TypedElements& send,
                             const TypedElements& receive) {
  if (!describe(request, request.output, receive, communicator.ranks)) return wrong;
  request.call.count = request.output.bytes / static_cast<std::size_t>(communicator.ranks);
  if (send.address == MPI_IN_PLACE) {
    request.input = request.output;
    request.copy_input = true;
  } else if (!describe(request, request.input, send, communicator.ranks) ||
             request.input.bytes != request.output.bytes) {
    return wrong;
  }
  return unless_empty(request.call.count);
}

// ---- Segments that lie apart ----

// Where the segments of a contiguous type lie, from the lowest one on; nothing to be said when they follow each other.
// The displacement of an empty segment is not significant.
void place_directly(const Communicator& communicator, Request& request) {
  Region& output = request.output;
  const int* counts = output.segment_counts;
  const int* extents = output.segment_displacements;
  int lowest = std::numeric_limits<int>::max();
  for (int rank = 0; rank < communicator.ranks; ++rank)
    if (counts[rank] > 0) lowest = std::min(lowest, extents[rank]);
  output.address += output.type->extent * lowest;
  request.lists->displacements.resize(request.lists->counts.size());
  std::size_t dense = 0;
  bool following = true;
  for (std::size_t rank = 0; rank < request.lists->counts.size(); ++rank) {
    const std::ptrdiff_t offset = std::ptrdiff_t{extents[rank]} - lowest;
    const bool empty = counts[rank] == 0;
    request.lists->displacements[rank] = empty ? dense : static_cast<std::size_t>(offset * output.type->extent);
    following &= request.lists->displacements[rank] == dense;
    dense += request.lists->counts[rank];
  }
  if (!following) request.displacements = request.lists->displacements.data();
}

void place_own_segment(const Communicator& communicator, Request& request) {
  const auto rank = static_cast<std::size_t>(communicator.rank);
  const Region& output = request.output;
  move_all(request.input, output.address + output.type->extent * output.segment_displacements[rank],
           static_cast<std::size_t>(output.segment_counts[rank]), *output.type);
  request.input.device = output.device;
  request.sharing = Sharing::input_in_output;
  for (std::size_t before = 0; before < rank; ++before) request.own_offset += request.lists->counts[before];
}

struct Segments {
  void* address;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;
};

const char* prepare_allgatherv(const Communicator& communicator, Request& request, const TypedElements& send,
                               const Segments& receive) {
  const Datatype* type = find_datatype(receive.type);
  if (type == nullptr || receive.displacements == nullptr ||
      !take_counts(communicator, request, receive.counts, type->size))
    return wrong;
  const std::size_t all = sum(request.lists->counts);
  if (all == 0) return no_data;
  Region& output = request.output;
  move_all(output, receive.address, all / type->size, *type);
  output.segment_counts = receive.counts;
  output.segment_displacements = receive.displacements;
  output.segments = communicator.ranks;
  if (!sound(output)) return wrong;
  find_device(output);
  const std::size_t own = request.lists->counts[static_cast<std::size_t>(communicator.rank)];
  if (send.address == MPI_IN_PLACE)
    place_own_segment(communicator, request);
  else if (!describe(request, request.input, send) || request.input.bytes != own)
    return wrong;
  if (!output.staged()) place_directly(communicator, request);
  return eligible;
}

// ---- Scans ----

const char* prepare_prefix(const Communicator& communicator, Request& request, const Operands& operands, int count,
                           Prefix prefix) {
  const bool has_output = prefix == Prefix::inclusive || communicator.rank > 0 || operands.send == MPI_IN_PLACE;
  if (const char* reason = prepare_vector(request, operands, count, has_output)) return reason;
  const std::size_t bytes = request.input.bytes;
  request.prefix = prefix;
  request.sharing = Sharing::none;
  request.own_offset = bytes * static_cast<std::size_t>(communicator.rank);
  return eligible;
}

}  // namespace

namespace arguments {

const char* barrier(MPI_Comm, const Communicator&, Request&) { return eligible; }

const char* bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator,
                  Request& request) {
  return prepare_bcast(communicator, request, {buffer, count, type}, root);
}

const char* reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm,
                   const Communicator& communicator, Request& request) {
  if (!is_rank(root, communicator)) return wrong;
  request.call.root = root;
  const bool at_root = communicator.rank == root;
  return prepare_vector(request, {send, at_root ? receive : nullptr, type, op}, count, at_root);
}

const char* allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                      const Communicator&, Request& request) {
  return prepare_vector(request, {send, receive, type, op}, count, true);
}

const char* allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                      MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_allgather(communicator, request, {send, send_count, send_type}, {receive, count, type});
}

const char* allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],
                       const int displacements[], MPI_Datatype type, MPI_Comm, const Communicator& communicator,
                       Request& request) {
  return prepare_allgatherv(communicator, request, {send, send_count, send_type},
                            {receive, counts, displacements, type});
}

const char* gather(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                   MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_gather(communicator, request, {send, send_count, send_type}, {receive, count, type}, root);
}

const char* scatter(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                    MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_scatter(communicator, request, {send, send_count, send_type}, {receive, count, type}, root);
}

const char* alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive, int count,
                     MPI_Datatype type, MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_alltoall(communicator, request, {send, send_count, send_type}, {receive, count, type});
}

const char* reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                                 const Communicator& communicator, Request& request) {
  return prepare_shares(communicator, request, {send, receive, type, op}, count);
}

const char* reduce_scatter(const void* send, void* receive, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm,
                           const Communicator& communicator, Request& request) {
  return prepare_uneven_shares(communicator, request, {send, receive, type, op}, counts);
}

const char* alltoallv(const void* send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                      void* receive, const int counts[], const int displacements[], MPI_Datatype type, MPI_Comm,
                      const Communicator& communicator, Request& request) {
  return prepare_exchange(communicator, request, pieces_of(send, send_counts, send_displacements, send_type),
                          pieces_of(receive, counts, displacements, type));
}

const char* alltoallw(const void* send, const int send_counts[], const int send_displacements[],
                      const MPI_Datatype send_types[], void* receive, const int counts[], const int displacements[],
                      const MPI_Datatype types[], MPI_Comm, const Communicator& communicator, Request& request) {
  return prepare_exchange(communicator, request, pieces_of(send, send_counts, send_displacements, send_types),
                          pieces_of(receive, counts, displacements, types));
}

const char* gatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],
                    const int displacements[], MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator,
                    Request& request) {
  return prepare_gatherv(communicator, request, root, own_of(send, send_count, send_type),
                         communicator.rank == root ? pieces_of(receive, counts, displacements, type) : Pieces{});
}

const char* scatterv(const void* send, const int counts[], const int displacements[], MPI_Datatype send_type,
                     void* receive, int count, MPI_Datatype type, int root, MPI_Comm, const Communicator& communicator,
                     Request& request) {
  return prepare_scatterv(communicator, request, root,
                          communicator.rank == root ? pieces_of(send, counts, displacements, send_type) : Pieces{},
                          own_of(receive, count, type));
}

const char* scan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                 const Communicator& communicator, Request& request) {
  return prepare_prefix(communicator, request, {send, receive, type, op}, count, Prefix::inclusive);
}

const char* exscan(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm,
                   const Communicator& communicator, Request& request) {
  return prepare_prefix(communicator, request, {send, receive, type, op}, count, Prefix::exclusive);
}

}  // namespace arguments
}  // namespace plait::plugin
