// What the door knows of MPI's handles: sizes and layout of datatypes, and which operators combine which elements.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <optional>

#include "core/reduction.h"

namespace plait::plugin {

inline constexpr std::size_t op_count = static_cast<std::size_t>(Op::count_);

// Facts of one committed datatype. Predefined ones live for ever, others until the user frees the type.
struct Datatype {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  std::size_t size = 0;       // bytes of data
  std::ptrdiff_t extent = 0;  // bytes from one element to the next
  std::ptrdiff_t lower_bound = 0;
  std::ptrdiff_t true_lower_bound = 0;
  std::size_t true_extent = 0;
  bool contiguous = false;  // any number of elements lies in memory exactly as it is packed
  bool gapless = false;     // an element lies in memory as it is packed, from its true lower bound on
  bool predefined = false;
  bool by_message = false;  // MPI_Pack would not keep all of its bytes
  bool long_reals = false;  // of a predefined type: made of 16-byte reals
  // By Op, of a predefined type: how a predefined operator combines its elements. No `apply` where the kernel is
  // missing or where the host refuses the combination: then the host gets the call, and raises the error if there is
  // one.
  const Reducer* reducers = nullptr;
};

// Makes the tables of predefined handles. Once, before any other function here, and not while another thread uses MPI:
// it changes the error handler of MPI_COMM_WORLD for the time of its questions to the host.
void start_types();
// Gives back what MPI holds for us. Once, before MPI ends.
void stop_types();

// The facts of a type; nullptr for MPI_DATATYPE_NULL and for a type that is not committed, which the host must report.
// A look-up for predefined types; for others an attribute of the type, made at its first use. Thread-safe. Throws where
// memory is short, as the next one does.
const Datatype* find_datatype(MPI_Datatype type);

// The same for the length of one call: programs make types for a single call and free them after it, and an attribute
// costs more than the question. `room` holds the facts of a type that has none, and only a type that comes again and
// again gets one.
const Datatype* find_datatype(MPI_Datatype type, Datatype& room);

// Asks the host for the sizes, extents and bounds of the type behind `handle`. Thread-safe.
void measure(Datatype& type);

// The facts of a predefined type; nullptr for all others. Thread-safe, local, asks the host nothing.
const Datatype* find_predefined(MPI_Datatype type);

// The predefined operator behind a handle. MPI_REPLACE and MPI_NO_OP are predefined as well, but reduce nothing.
std::optional<Op> predefined_op(MPI_Op op);
bool usable_in_reductions(MPI_Op op);

}  // namespace plait::plugin
