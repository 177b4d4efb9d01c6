// MPI lets a program free a datatype as soon as it has posted an operation that uses it: what goes on here holds
// duplicates.
#pragma once

#include <mpi.h>

#include <vector>

#include "plugin/layer.h"
#include "plugin/mpi/types/datatype.h"
#include "runtime/execution/request.h"

namespace plait::plugin {

class HeldTypes {
 public:
  // The request's regions refer to duplicates from now on, but for predefined types. Returns an MPI error code.
  int hold(Request& request);
  // Frees the duplicates. The regions are not to be used any more.
  void release();

 private:
  int hold(const Layout*& layout);

  struct Held {
    MPI_Datatype handle, duplicate;
    const Datatype* type;
  };
  std::vector<Held> held_;  // keeps its memory
};

}  // namespace plait::plugin
