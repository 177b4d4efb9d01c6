// MPI's predefined datatypes and operators.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>

#include "core/reduction.h"
#include "plugin/mpi/types/datatype.h"

namespace plait::plugin {

inline constexpr std::size_t op_count = static_cast<std::size_t>(Op::count_);

// Makes the tables. Once, before any other function here, and not while another thread uses MPI: it changes the error
// handler of MPI_COMM_WORLD for the time of its questions to the host. `pack_loses_reals`: packing_loses_reals().
void start_predefined_types(bool pack_loses_reals);

// The facts of a predefined type; nullptr for all others. Thread-safe, local, asks the host nothing.
const Datatype* find_predefined(MPI_Datatype type);

// The predefined operator behind a handle. MPI_REPLACE and MPI_NO_OP are predefined as well, but reduce nothing.
std::optional<Op> predefined_op(MPI_Op op);
bool usable_in_reductions(MPI_Op op);

}  // namespace plait::plugin
