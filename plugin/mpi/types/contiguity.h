// Whether a datatype is a plain array of bytes by another name.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>

#include "plugin/mpi/types/datatype.h"

namespace plait::plugin {

// Whether any number of elements lies in memory in the order and without the gaps of the packed form. Sizes and extents
// do not tell: an indexed type may visit a gapless block in another order, or one place twice and another one never.
bool is_contiguous(MPI_Datatype type);
bool is_contiguous(const Datatype& measured);  // whose sizes, extents and bounds are known already

// The data of one element, where they lie in memory as they are packed; nullopt: they do not.
std::optional<ByteRun> run_of(const Datatype& measured);

// Sizes, extents and bounds of any type.
Datatype facts_of(MPI_Datatype type);

}  // namespace plait::plugin
