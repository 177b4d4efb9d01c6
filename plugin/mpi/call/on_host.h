// The host's own call, of each form, with copies of what lies in memory of a device that the host does not know.
#pragma once

#include <mpi.h>

#include <exception>
#include <memory>
#include <utility>

#include "plugin/layer.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/call/host_copies.h"
#include "plugin/mpi/call/host_errand.h"
#include "plugin/mpi/host/errors.h"

namespace plait::plugin {

// `replace(copies)` puts copies in the place of the call's own addresses; `call()` makes it. An error of a copy is this
// rank's, raised on the communicator. Who goes on after that makes the host's call all the same, in which the others
// wait.
template <class Replace, class Call>
[[gnu::noinline, gnu::cold]] int call_with_copies(MPI_Comm comm, Replace&& replace, Call&& call) {
  try {
    HostCopies copies;
    replace(copies);
    if (const Status brought = copies.bring(); !brought.ok()) {
      const int raised = raise_error_of_call(comm, brought);
      copies.spoil();
      static_cast<void>(call());
      return raised;
    }
    const int code = call();
    if (code != MPI_SUCCESS) return code;
    const Status taken = copies.take();
    return taken.ok() ? code : raise_error_of_call(comm, taken);
  } catch (const std::exception& exception) {
    return raise_error_of_call(comm, status_of(exception));
  }
}

template <class Replace, class Call>
[[gnu::always_inline]] inline int call_on_host(MPI_Comm comm, Replace&& replace, Call&& call) {
  return host_may_need_copies() ? call_with_copies(comm, replace, call) : call();
}

// The same of a call that does not block, and of one that makes a persistent one, which `call(request)` makes.
template <class Replace, class Call>
[[gnu::noinline, gnu::cold]] int post_with_copies(Collective collective, MPI_Comm comm, Replace&& replace, Call&& call,
                                                  MPI_Request* request) {
  try {
    auto errand = std::make_unique<HostErrand>();
    replace(errand->copies);
    if (!errand->copies.any()) return call(request);
    errand->bring();
    if (const int code = call(&errand->inner); code != MPI_SUCCESS) return code;
    return post_errand(std::move(errand), collective, known_communicator(comm), request);
  } catch (const std::exception& exception) {
    return raise_error_of_call(comm, status_of(exception));
  }
}

template <class Replace, class Call>
[[gnu::noinline, gnu::cold]] int make_with_copies(Collective collective, MPI_Comm comm, Replace&& replace, Call&& call,
                                                  MPI_Request* request) {
  try {
    auto errand = std::make_unique<HostErrand>();
    replace(errand->copies);
    if (!errand->copies.any()) return call(request);
    if (const int code = call(&errand->inner); code != MPI_SUCCESS) return code;
    errand->persistent = true;
    return make_errand(std::move(errand), collective, known_communicator(comm), request);
  } catch (const std::exception& exception) {
    return raise_error_of_call(comm, status_of(exception));
  }
}

}  // namespace plait::plugin
