#include "runtime/arguments/reductions.h"

#include "runtime/arguments/block_counts.h"
#include "runtime/arguments/regions.h"
#include "runtime/job/job.h"

namespace plait::runtime {
namespace {

constexpr std::size_t max_element_bytes = 4096;  // slots and chunks hold many elements of this size

const char* combine_by_own(Request& request, const Layout& type, const Operator& op) {
  if (type.size == 0) return reasons::no_data;
  if (type.size > max_element_bytes) return reasons::long_element;
  request.call.commutative = op.commutative;
  request.call.element_bytes = type.size;
  UserOperator& user = request.lists->user;
  user.start(op.own, type);
  request.user = &user;
  request.reducer = &user.reducer();
  return eligible;
}

// How elements are combined, and how they travel: of a predefined type as they lie in memory, holes included, else
// packed.
const char* combine(Request& request, const TypeFacts& type, const Operator& op) {
  if (op.op == Op::count_) [[unlikely]]
    return combine_by_own(request, type, op);
  if (!type.predefined) return reasons::derived_type;
  const Reducer& reducer = type.reducers[static_cast<std::size_t>(op.op)];
  if (reducer.apply == nullptr) return reasons::undefined_operator;
  request.reducer = &reducer;
  request.call.element_bytes = static_cast<std::size_t>(type.extent);
  if (job().config.reproducible == Reproducible::order) [[unlikely]]
    request.ordered = ordered_reduction(reducer.op, reducer.element);
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
// that the data lie in place.
bool place_operands(Request& request, const Operands& operands, const Lengths& lengths) {
  const bool said = is_in_place(operands.send), in_place = said || operands.send == operands.receive;
  if (said && !lengths.has_output) return false;
  if (lengths.has_output) {
    place(request, request.output, operands.receive, lengths.output, *operands.type);
    if (!is_sound(request.output)) return false;
    find_device(request.output);
  }
  if (!in_place || !lengths.has_output) {
    place(request, request.input, operands.send, lengths.input, *operands.type);
  } else if (lengths.whole) {
    request.input = request.output;
    request.sharing = Sharing::input_in_output;
  } else {
    place(request, request.input, operands.receive, lengths.input, *operands.type);
    request.copy_input = true;
  }
  if (!is_sound(request.input)) return false;
  if (request.sharing == Sharing::none) find_device(request.input);
  return true;
}

bool must_be_checked(const Operands& operands) { return operands.type == nullptr || operands.op == nullptr; }

// Of operands and a result of one length.
const char* prepare_vector(Request& request, const Operands& operands, std::ptrdiff_t count, bool has_output) {
  if (must_be_checked(operands) || count < 0) return reasons::wrong_argument;
  const auto elements = static_cast<std::size_t>(count);
  request.call.count = elements;
  if (const char* reason = combine(request, *operands.type, *operands.op)) return reason;
  if (!place_operands(request, operands, {elements, elements, has_output, true})) return reasons::wrong_argument;
  return unless_empty(request.input.bytes);
}

// Of which each rank gets a share.
const char* prepare_shares(Request& request, const Operands& operands, std::size_t all, std::size_t own) {
  if (const char* reason = combine(request, *operands.type, *operands.op)) return reason;
  if (!place_operands(request, operands, {all, own, true, false})) return reasons::wrong_argument;
  return unless_empty(request.input.bytes);
}

}  // namespace

const char* prepare_allreduce(Request& request, const void* send, void* receive, std::ptrdiff_t count,
                              const TypeFacts* type, const Operator* op) {
  return prepare_vector(request, {send, receive, type, op}, count, true);
}

const char* prepare_reduce(const Communicator& communicator, Request& request, const Operands& operands,
                           std::ptrdiff_t count, int root) {
  if (!is_rank(root, communicator)) return reasons::wrong_argument;
  request.call.root = root;
  const bool at_root = communicator.rank == root;
  void* receive = at_root ? operands.receive : nullptr;
  return prepare_vector(request, {operands.send, receive, operands.type, operands.op}, count, at_root);
}

const char* prepare_reduce_scatter_block(const Communicator& communicator, Request& request, const Operands& operands,
                                         std::ptrdiff_t count) {
  if (must_be_checked(operands) || count < 0) return reasons::wrong_argument;
  const auto share = static_cast<std::size_t>(count);
  request.call.count = share;
  return prepare_shares(request, operands, share * static_cast<std::size_t>(communicator.ranks), share);
}

const char* prepare_reduce_scatter(const Communicator& communicator, Request& request, const Operands& operands,
                                   const NumberList& counts) {
  if (must_be_checked(operands) || !take_counts(communicator, request, counts, 1)) return reasons::wrong_argument;
  const std::size_t own = request.lists->counts[static_cast<std::size_t>(communicator.rank)];
  return prepare_shares(request, operands, sum_of_counts(request), own);
}

const char* prepare_scan(const Communicator& communicator, Request& request, const Operands& operands,
                         std::ptrdiff_t count, Prefix prefix) {
  const bool has_output = prefix == Prefix::inclusive || communicator.rank > 0 || is_in_place(operands.send);
  if (const char* reason = prepare_vector(request, operands, count, has_output)) return reason;
  const std::size_t bytes = request.input.bytes;
  request.prefix = prefix;
  if (request.ordered != nullptr) request.reducer = &request.ordered->at_once;
  request.sharing = Sharing::none;
  request.own_offset = bytes * static_cast<std::size_t>(communicator.rank);
  return eligible;
}

}  // namespace plait::runtime
