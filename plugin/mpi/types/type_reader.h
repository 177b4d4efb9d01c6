// MPI's types for runtime/types: what MPI tells of them.
#pragma once

#include <mpi.h>

#include "plugin/layer.h"
#include "plugin/mpi/types/datatype.h"
#include "runtime/types/type_reader.h"

namespace plait::plugin {

// Lives for ever.
const TypeReader& mpi_types();
TypeHandle handle_of(MPI_Datatype type);
MPI_Datatype type_of(TypeHandle handle);

// Sizes, extents and bounds of any type.
Datatype facts_of(MPI_Datatype type);

}  // namespace plait::plugin
