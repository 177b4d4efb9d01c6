// Non-blocking collectives. The program gets a real request of the host's, a generalized one, which works with all of
// MPI's functions for requests; behind it stands an Operation.
//
// As with blocking calls the first eligible ones are the host's. The one that makes the communicator worth a set-up
// cannot wait for it: from there on calls are kept, in order, until the set-up has come to its end in progress().
#pragma once

#include <mpi.h>

#include "plugin/communicator.h"
#include "plugin/errors.h"
#include "plugin/operation.h"
#include "plugin/request.h"

namespace plait {

// What becomes of a call that was prepared.
enum class Admission : std::uint8_t {
  host,    // the host's, now; `operation.reason` says why
  kept,    // may yet be the host's: the communicator is being prepared
  taken,   // runs here
  failed,  // `operation.error`
};
Admission admit(Operation& operation);

// Finds the plan of an operation whose communicator is accelerated; without `prepared` afterwards the host has it, for
// `reason`. `prepared` may be too long for what is set up.
void prepare_to_run(Operation& operation);

// A kept call has found who runs it. Frees the operators that the program freed meanwhile.
void let_go(Communicator& communicator);

// For the report and the trace.
void record_operation(Operation& operation);

// Makes the program's request and hands the operation over; returns an MPI error code, after which it is gone.
int give_request(Operation& operation, MPI_Request* request);

template <class Arguments>
Admission prepare_operation(const Arguments& arguments, Operation& operation) {
  operation.begin_ns = reporting() ? monotonic_ns() : 0;
  operation.reason = arguments.prepare(*operation.communicator, operation.request);
  const Admission admission = admit(operation);
  if (admission == Admission::kept)
    operation.post_on_host = [held = operation.types.replace_in(arguments)](MPI_Comm comm, MPI_Request* request) {
      return held.on_host(comm, request);
    };
  return admission;
}

// The way of every non-blocking call.
template <class Arguments>
int post(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  Communicator* communicator = request != nullptr ? serving(comm) : nullptr;
  const bool hopeless = communicator == nullptr || communicator->road == Road::host;
  if (hopeless) {
    const std::uint64_t begin_ns = reporting() ? monotonic_ns() : 0;
    note_host_call();
    const int code = arguments.on_host(comm, request);
    if (begin_ns != 0)
      count_host_call({.collective = Arguments::collective,
                       .comm = comm,
                       .communicator = communicator,
                       .call = nullptr,
                       .reason = communicator != nullptr ? communicator->host_reason : nullptr,
                       .form = Form::nonblocking},
                      begin_ns);
    return code;
  }
  Operation& operation = *take_operation(*communicator, Arguments::collective);
  switch (prepare_operation(arguments, operation)) {
    case Admission::host: {
      note_host_call();
      const int code = arguments.on_host(comm, request);
      if (operation.begin_ns != 0)
        count_host_call({.collective = Arguments::collective,
                         .comm = comm,
                         .communicator = communicator,
                         .call = &operation.request.call,
                         .reason = operation.reason,
                         .form = Form::nonblocking},
                        operation.begin_ns);
      give_back(&operation);
      return code;
    }
    case Admission::failed: {
      const int error = operation.error;
      give_back(&operation);
      return raise_error(comm, error);
    }
    default:
      return give_request(operation, request);
  }
}

}  // namespace plait

namespace plait::door {

// Waiting in the host costs more than the operation itself where that is small: a wait for this thread's latest one
// begins with turns of our own.
int wait(MPI_Request* request, MPI_Status* status);

// An operator that a kept call uses lives until it is known who runs the call.
int op_free(MPI_Op* op);

}  // namespace plait::door
