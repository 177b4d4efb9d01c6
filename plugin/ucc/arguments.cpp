#include "plugin/ucc/arguments.h"

#include <cstddef>

#include "plugin/ucc/types.h"
#include "runtime/arguments/moved_data.h"
#include "runtime/arguments/pieces.h"
#include "runtime/arguments/reductions.h"
#include "runtime/job/reasons.h"

namespace plait::plugin {
namespace {

bool has_flag(const ucc_coll_args_t& args, std::uint64_t flag) {
  return (args.mask & UCC_COLL_ARGS_FIELD_FLAGS) != 0 && (args.flags & flag) != 0;
}
bool in_place_said(const ucc_coll_args_t& args) { return has_flag(args, UCC_COLL_ARGS_FLAG_IN_PLACE); }

// Of 32 or 64 bits, as the call's flag says.
NumberList list_of(const void* list, bool wide) {
  return wide ? NumberList::unsigned_64(static_cast<const std::uint64_t*>(list))
              : NumberList::unsigned_32(static_cast<const std::uint32_t*>(list));
}
NumberList counts_of(const ucc_coll_args_t& args, const ucc_coll_buffer_info_v_t& side) {
  return list_of(side.counts, has_flag(args, UCC_COLL_ARGS_FLAG_COUNT_64BIT));
}
NumberList displacements_of(const ucc_coll_args_t& args, const ucc_coll_buffer_info_v_t& side) {
  return list_of(side.displacements, has_flag(args, UCC_COLL_ARGS_FLAG_DISPLACEMENTS_64BIT));
}
Pieces pieces_of(const ucc_coll_args_t& args, const ucc_coll_buffer_info_v_t& side) {
  return {.address = side.buffer,
          .counts = counts_of(args, side),
          .displacements = displacements_of(args, side),
          .layout = type_of(side.datatype)};
}

Elements elements_of(const ucc_coll_buffer_info_t& side) {
  return {side.buffer, static_cast<std::ptrdiff_t>(side.count), type_of(side.datatype)};
}
// UCC counts what comes from or goes to all ranks; ours is one rank's part. A length that cannot be cut is wrong.
Elements part_of(const ucc_coll_buffer_info_t& side, const Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.ranks);
  Elements elements = elements_of(side);
  elements.count = side.count % ranks == 0 ? static_cast<std::ptrdiff_t>(side.count / ranks) : -1;
  return elements;
}
Elements placed_in_other() { return {in_place(), 0}; }

Operands operands_of(const ucc_coll_args_t& args, const void* send, void* receive, ucc_datatype_t type) {
  return {send, receive, type_of(type), operator_of(args.op)};
}

int root_of(const ucc_coll_args_t& args) { return static_cast<int>(args.root); }
bool at_root(const ucc_coll_args_t& args, const Communicator& communicator) {
  return root_of(args) == communicator.rank;
}

// ---- One function a collective ----

const char* read_allreduce(const ucc_coll_args_t& args, Request& request) {
  const bool in_place_data = in_place_said(args);
  const auto& side = in_place_data ? args.dst.info : args.src.info;
  return prepare_allreduce(request, in_place_data ? in_place() : args.src.info.buffer, args.dst.info.buffer,
                           static_cast<std::ptrdiff_t>(side.count), type_of(side.datatype), operator_of(args.op));
}

const char* read_reduce(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const bool in_place_data = in_place_said(args) && at_root(args, communicator);
  const auto& side = in_place_data ? args.dst.info : args.src.info;
  const Operands operands = operands_of(args, in_place_data ? in_place() : args.src.info.buffer,
                                        at_root(args, communicator) ? args.dst.info.buffer : nullptr, side.datatype);
  return prepare_reduce(communicator, request, operands, static_cast<std::ptrdiff_t>(side.count), root_of(args));
}

const char* read_allgather(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  return prepare_allgather(communicator, request, in_place_said(args) ? placed_in_other() : elements_of(args.src.info),
                           part_of(args.dst.info, communicator));
}

const char* read_allgatherv(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const auto& to = args.dst.info_v;
  return prepare_allgatherv(communicator, request, in_place_said(args) ? placed_in_other() : elements_of(args.src.info),
                            {to.buffer, counts_of(args, to), displacements_of(args, to), type_of(to.datatype)});
}

const char* read_gather(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const bool root = at_root(args, communicator);
  return prepare_gather(communicator, request,
                        root && in_place_said(args) ? placed_in_other() : elements_of(args.src.info),
                        root ? part_of(args.dst.info, communicator) : Elements{}, root_of(args));
}

const char* read_scatter(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const bool root = at_root(args, communicator);
  return prepare_scatter(communicator, request, root ? part_of(args.src.info, communicator) : Elements{},
                         root && in_place_said(args) ? placed_in_other() : elements_of(args.dst.info), root_of(args));
}

const char* read_alltoall(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  return prepare_alltoall(communicator, request,
                          in_place_said(args) ? placed_in_other() : part_of(args.src.info, communicator),
                          part_of(args.dst.info, communicator));
}

// Of a rank that has nothing to send or to receive, too: whether a call is taken is decided alike.
bool is_ours(ucc_datatype_t type) { return type_of(type) != nullptr; }

const char* read_alltoallv(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  if (!is_ours(args.dst.info_v.datatype)) return reasons::undefined_operator;
  const auto& from = in_place_said(args) ? args.dst.info_v : args.src.info_v;
  return prepare_exchange(communicator, request, pieces_of(args, from), pieces_of(args, args.dst.info_v));
}

const char* read_gatherv(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const bool root = at_root(args, communicator);
  if (!is_ours(root ? args.dst.info_v.datatype : args.src.info.datatype)) return reasons::undefined_operator;
  return prepare_gatherv(communicator, request, root_of(args),
                         root && in_place_said(args) ? placed_in_other() : elements_of(args.src.info),
                         root ? pieces_of(args, args.dst.info_v) : Pieces{});
}

const char* read_scatterv(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const bool root = at_root(args, communicator);
  if (!is_ours(root ? args.src.info_v.datatype : args.dst.info.datatype)) return reasons::undefined_operator;
  return prepare_scatterv(communicator, request, root_of(args), root ? pieces_of(args, args.src.info_v) : Pieces{},
                          root && in_place_said(args) ? placed_in_other() : elements_of(args.dst.info));
}

// In place each rank's share ends up where it was, not at the beginning as MPI has it.
void leave_share_in_place(Request& request, std::size_t elements_before) {
  request.output.address += elements_before * request.call.element_bytes;
}

const char* read_reduce_scatter(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const auto& to = args.dst.info;
  if (!in_place_said(args))
    return prepare_reduce_scatter_block(communicator, request,
                                        operands_of(args, args.src.info.buffer, to.buffer, to.datatype),
                                        static_cast<std::ptrdiff_t>(to.count));
  const Elements share = part_of(to, communicator);
  const char* reason = prepare_reduce_scatter_block(communicator, request,
                                                    operands_of(args, in_place(), to.buffer, to.datatype), share.count);
  if (reason == eligible)
    leave_share_in_place(request, static_cast<std::size_t>(share.count) * static_cast<std::size_t>(communicator.rank));
  return reason;
}

const char* read_reduce_scatterv(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  const auto& to = args.dst.info_v;
  const bool in_place_data = in_place_said(args);
  const NumberList counts = counts_of(args, to);
  const char* reason = prepare_reduce_scatter(
      communicator, request,
      operands_of(args, in_place_data ? in_place() : args.src.info.buffer, to.buffer, to.datatype), counts);
  if (reason != eligible || !in_place_data) return reason;
  std::size_t before = 0;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(communicator.rank); ++rank)
    before += static_cast<std::size_t>(counts[rank]);
  leave_share_in_place(request, before);
  return reason;
}

}  // namespace

std::optional<Collective> collective_of(ucc_coll_type_t type) {
  switch (type) {
    case UCC_COLL_TYPE_ALLGATHER:
      return Collective::allgather;
    case UCC_COLL_TYPE_ALLGATHERV:
      return Collective::allgatherv;
    case UCC_COLL_TYPE_ALLREDUCE:
      return Collective::allreduce;
    case UCC_COLL_TYPE_ALLTOALL:
      return Collective::alltoall;
    case UCC_COLL_TYPE_ALLTOALLV:
      return Collective::alltoallv;
    case UCC_COLL_TYPE_BARRIER:
      return Collective::barrier;
    case UCC_COLL_TYPE_BCAST:
      return Collective::bcast;
    case UCC_COLL_TYPE_GATHER:
      return Collective::gather;
    case UCC_COLL_TYPE_GATHERV:
      return Collective::gatherv;
    case UCC_COLL_TYPE_REDUCE:
      return Collective::reduce;
    case UCC_COLL_TYPE_REDUCE_SCATTER:
      return Collective::reduce_scatter_block;
    case UCC_COLL_TYPE_REDUCE_SCATTERV:
      return Collective::reduce_scatter;
    case UCC_COLL_TYPE_SCATTER:
      return Collective::scatter;
    case UCC_COLL_TYPE_SCATTERV:
      return Collective::scatterv;
    default:
      return {};
  }
}

bool overwrites_what_it_sends(const ucc_coll_args_t& args) {
  return args.coll_type == UCC_COLL_TYPE_ALLTOALLV && in_place_said(args);
}

bool combines(ucc_coll_type_t type) {
  return (type & (UCC_COLL_TYPE_ALLREDUCE | UCC_COLL_TYPE_REDUCE | UCC_COLL_TYPE_REDUCE_SCATTER |
                  UCC_COLL_TYPE_REDUCE_SCATTERV)) != 0;
}

// Only the root of a reduce has a result.
ucc_datatype_t combined_type(const ucc_coll_args_t& args, int rank) {
  if (args.coll_type == UCC_COLL_TYPE_REDUCE_SCATTERV) return args.dst.info_v.datatype;
  const bool result = args.coll_type != UCC_COLL_TYPE_REDUCE || root_of(args) == rank;
  return result ? args.dst.info.datatype : args.src.info.datatype;
}

const char* read_arguments(const ucc_coll_args_t& args, const Communicator& communicator, Request& request) {
  if (combines(args.coll_type) && operator_of(args.op) == nullptr) return reasons::undefined_operator;
  switch (request.call.collective) {
    case Collective::barrier:
      return eligible;
    case Collective::bcast:
      return prepare_bcast(communicator, request, args.src.info.buffer,
                           static_cast<std::ptrdiff_t>(args.src.info.count), type_of(args.src.info.datatype),
                           root_of(args));
    case Collective::allreduce:
      return read_allreduce(args, request);
    case Collective::reduce:
      return read_reduce(args, communicator, request);
    case Collective::allgather:
      return read_allgather(args, communicator, request);
    case Collective::allgatherv:
      return read_allgatherv(args, communicator, request);
    case Collective::gather:
      return read_gather(args, communicator, request);
    case Collective::scatter:
      return read_scatter(args, communicator, request);
    case Collective::alltoall:
      return read_alltoall(args, communicator, request);
    case Collective::alltoallv:
      return read_alltoallv(args, communicator, request);
    case Collective::gatherv:
      return read_gatherv(args, communicator, request);
    case Collective::scatterv:
      return read_scatterv(args, communicator, request);
    case Collective::reduce_scatter_block:
      return read_reduce_scatter(args, communicator, request);
    case Collective::reduce_scatter:
      return read_reduce_scatterv(args, communicator, request);
    default:
      return reasons::undefined_operator;
  }
}

}  // namespace plait::plugin
