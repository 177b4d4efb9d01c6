// The facts of the program's datatypes, by their handles.
#pragma once

#include <mpi.h>

#include "plugin/mpi/types/datatype.h"
#include "plugin/mpi/types/predefined_types.h"

namespace plait::plugin {

// Once, before any other function here and after start_layout(); not while another thread uses MPI
// (start_predefined_types()).
void start_types();
// Gives back what MPI holds for us. Once, before MPI ends.
void stop_types();

namespace detail {
const Datatype* find_derived(MPI_Datatype type);
const Datatype* find_derived(MPI_Datatype type, Datatype& room);
}  // namespace detail

// The facts of a type; nullptr for MPI_DATATYPE_NULL and for a type that is not committed, which the host must report.
// A look-up for predefined types; for others an attribute of the type, made at its first use. Thread-safe. Throws where
// memory is short, as the next one does.
inline const Datatype* find_datatype(MPI_Datatype type) {
  const Datatype* predefined = find_predefined(type);
  return predefined != nullptr ? predefined : detail::find_derived(type);
}

// The same for the length of one call: programs make types for a single call and free them after it, and an attribute
// costs more than the question. `room` holds the facts of a type that has none, and only a type that comes again and
// again gets one.
inline const Datatype* find_datatype(MPI_Datatype type, Datatype& room) {
  const Datatype* predefined = find_predefined(type);
  return predefined != nullptr ? predefined : detail::find_derived(type, room);
}

}  // namespace plait::plugin
