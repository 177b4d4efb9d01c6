// What is known of one of MPI's datatypes.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "plugin/layer.h"
#include "runtime/types/type_reader.h"

namespace plait::plugin {

// Facts of one committed datatype. Predefined ones live for ever, others until the user frees the type.
struct Datatype : TypeFacts {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  bool by_message = false;  // MPI_Pack would not keep all of its bytes
  bool long_reals = false;  // of a predefined type: made of 16-byte reals
};

// Asks the host for the sizes, extents and bounds of the type behind `handle`. Thread-safe.
void measure(Datatype& type);

}  // namespace plait::plugin
