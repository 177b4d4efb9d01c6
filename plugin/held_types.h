// MPI lets a program free a datatype as soon as it has posted an operation, or made a persistent one, that uses it:
// what goes on here holds duplicates.
#pragma once

#include <mpi.h>

#include <array>

#include "plugin/request.h"

namespace plait {

class HeldTypes {
 public:
  // The request's regions refer to duplicates from now on, but for predefined types. Returns an MPI error code.
  int hold(Request& request);
  // Frees the duplicates. The regions are not to be used any more.
  void release();

  // The same call without the program's types; those that are not significant on this rank stay as they are.
  template <class Arguments>
  Arguments replace_in(Arguments arguments) const {
    if constexpr (requires { arguments.type; }) arguments.type = instead_of(arguments.type);
    if constexpr (requires { arguments.send_type; }) arguments.send_type = instead_of(arguments.send_type);
    return arguments;
  }

 private:
  struct Pair {
    MPI_Datatype original = MPI_DATATYPE_NULL, duplicate = MPI_DATATYPE_NULL;
  };
  int hold(Region& region, Pair& pair);
  MPI_Datatype instead_of(MPI_Datatype type) const;

  std::array<Pair, 2> pairs_;
};

}  // namespace plait
