// The arguments of UCC's collectives in the words of runtime/arguments.
#pragma once

#include <ucc/api/ucc.h>

#include <optional>

#include "plugin/layer.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

// Nothing: none of ours (fan-in and fan-out).
std::optional<Collective> collective_of(ucc_coll_type_t type);

bool combines(ucc_coll_type_t type);
// Pieces in place, which are sent and received in any order: to be sent from elsewhere.
bool overwrites_what_it_sends(const ucc_coll_args_t& args);
// Of a collective that combines elements: their type.
ucc_datatype_t combined_type(const ucc_coll_args_t& args, int rank);

// Fills the request, whose call.collective and lists are set. nullptr, or why the call is not taken: the same on all
// ranks, as UCC has them give the same types and operator. May throw std::bad_alloc.
const char* read_arguments(const ucc_coll_args_t& args, const Communicator& communicator, Request& request);

}  // namespace plait::plugin
