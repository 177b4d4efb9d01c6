// MPI's predefined datatypes and operators.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "core/reduction.h"
#include "plugin/mpi/types/datatype.h"
#include "runtime/arguments/reductions.h"

namespace plait::plugin {

inline constexpr std::size_t op_count = static_cast<std::size_t>(Op::count_);

// Makes the tables. Once, before any other function here, and not while another thread uses MPI: it changes the error
// handler of MPI_COMM_WORLD for the time of its questions to the host. `pack_loses_reals`: packing_loses_reals().
void start_predefined_types(bool pack_loses_reals);

// The facts of a predefined type; nullptr for all others. Thread-safe, local, asks the host nothing.
const Datatype* find_predefined(MPI_Datatype type);

// The operator behind a handle, in `room` where it is the program's own; nullptr for what the host must check.
// MPI_REPLACE and MPI_NO_OP are predefined, but reduce nothing. Thread-safe.
const Operator* find_operator(MPI_Op op, Operator& room);
MPI_Op operator_of(OperatorHandle handle);

}  // namespace plait::plugin
