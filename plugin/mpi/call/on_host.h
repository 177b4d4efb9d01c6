// The host's own call, of each form, with copies of what lies in memory of a device that the host does not know.
#pragma once

#include <mpi.h>

#include <exception>
#include <utility>

#include "plugin/layer.h"
#include "plugin/mpi/call/host_copies.h"
#include "plugin/mpi/host/errors.h"

namespace plait::plugin {

// `replace(copies)` puts copies in the place of the call's own addresses; `call()` makes it. An error of a copy is this
// rank's, raised on the communicator.
template <class Replace, class Call>
[[gnu::noinline, gnu::cold]] int call_with_copies(MPI_Comm comm, Replace&& replace, Call&& call) {
  try {
    HostCopies copies;
    replace(copies);
    if (const Status brought = copies.bring(); !brought.ok()) return raise_error_of_call(comm, brought);
    const int code = call();
    if (code != MPI_SUCCESS) return code;
    const Status taken = copies.take();
    return taken.ok() ? code : raise_error_of_call(comm, taken);
  } catch (const std::exception& exception) {
    return raise_error_of_call(comm, status_of(exception));
  }
}

}  // namespace plait::plugin
