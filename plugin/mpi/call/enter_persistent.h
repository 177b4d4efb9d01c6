// The way of every call that makes a persistent collective, from the program into Plait or to the host.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>

#include "plugin/layer.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/call/record_call.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/host/host_call.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/request/persistent.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/request.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "tl/trace.h"

namespace plait::plugin {

// nullptr where memory is short.
template <class Arguments>
MpiOperation* take_prepared(const Arguments& arguments, MpiCommunicator& communicator) noexcept {
  MpiOperation* operation = nullptr;
  try {
    operation = take_operation(communicator, Arguments::collective);
    operation->reason = arguments.prepare(communicator, operation->request);
    return operation;
  } catch (const std::exception&) {
    if (operation != nullptr) give_back(operation);
    return nullptr;
  }
}

template <class Arguments>
int make_unrecorded(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  const std::uint64_t begin_ns = reporting() ? monotonic_ns() : 0;
  const char* reason = nullptr;
  MpiCommunicator* communicator = nullptr;
  PersistentSpace* space = nullptr;
  try {
    communicator = request != nullptr ? serving(comm) : nullptr;
    space = communicator != nullptr ? persistent_space(*communicator, reason) : nullptr;
  } catch (const std::exception& exception) {
    return leave_call(comm, communicator, exception);
  }
  MpiOperation* operation = nullptr;
  if (space != nullptr) {
    operation = take_prepared(arguments, *communicator);
    reason = reasons::no_persistent_memory;
    if (operation == nullptr) {
      decline_request(*space);
    } else {
      const int code = make_request(*operation, *space, request);
      if (operation->reason == nullptr) return code;
      reason = operation->reason;
    }
  }
  note_host_call();
  if (operation != nullptr && operation->request.ordered != nullptr) [[unlikely]]
    note_lost_order(Arguments::collective, *communicator, reason);
  const int code = arguments.on_host(comm, request);
  if (begin_ns != 0)
    count_host_call({.collective = Arguments::collective,
                     .comm = comm,
                     .communicator = communicator,
                     .call = operation != nullptr ? &operation->request.call : nullptr,
                     .reason = reason,
                     .form = Form::persistent},
                    begin_ns);
  if (operation != nullptr) give_back(operation);
  return code;
}

template <class Arguments>
[[gnu::noinline, gnu::cold]] int make_recorded(const Arguments& arguments, MPI_Comm comm, MPI_Request* request,
                                               const void* site) {
  RecordedCall recorded(Arguments::collective, Form::persistent, take_site(site));
  recorded.read(arguments.prepare, request != nullptr ? known_communicator(comm) : nullptr);
  const int code = make_unrecorded(arguments, comm, request);
  if (code == MPI_SUCCESS) recorded.end(comm, request);
  return code;
}

template <class Arguments>
int make_persistent(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  if (recorder() != nullptr) [[unlikely]]
    return make_recorded(arguments, comm, request, __builtin_return_address(0));
  return make_unrecorded(arguments, comm, request);
}

}  // namespace plait::plugin
