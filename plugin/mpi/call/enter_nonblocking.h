// The way of every non-blocking call, from the program into Plait or to the host.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>
#include <utility>

#include "plugin/layer.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/call/record_call.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host_call.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/operation.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/decide.h"
#include "runtime/execution/request.h"
#include "runtime/job/job.h"
#include "tl/trace.h"

namespace plait::plugin {

// The call as the program made it, counted for the report. `operation` may be nullptr: nobody looked at the call.
template <class Arguments>
int post_on_host(const Arguments& arguments, MPI_Comm comm, MPI_Request* request, const MpiCommunicator* communicator,
                 const MpiOperation* operation) {
  note_host_call();
  if (operation != nullptr && operation->request.ordered != nullptr) [[unlikely]]
    note_lost_order(Arguments::collective, *communicator, operation->reason);
  const std::uint64_t begin_ns = reporting() ? monotonic_ns() : 0;
  const int code = arguments.on_host(comm, request);
  if (begin_ns == 0) return code;
  const char* reason = communicator != nullptr ? communicator->host_reason : nullptr;
  count_host_call({.collective = Arguments::collective,
                   .comm = comm,
                   .communicator = communicator,
                   .call = operation != nullptr ? &operation->request.call : nullptr,
                   .reason = operation != nullptr ? operation->reason : reason,
                   .form = Form::nonblocking},
                  begin_ns);
  return code;
}

template <class Arguments>
int post_unrecorded(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  MpiCommunicator* communicator = nullptr;
  MpiOperation* made = nullptr;
  try {
    communicator = request != nullptr ? serving(comm) : nullptr;
    if (communicator != nullptr && !hosts_for_good(*communicator)) {
      made = take_operation(*communicator, Arguments::collective);
      made->begin_ns = reporting() ? monotonic_ns() : 0;
      made->reason = arguments.prepare(*communicator, made->request);
    }
  } catch (const std::exception& exception) {
    if (made != nullptr) give_back(std::exchange(made, nullptr));
    if (communicator == nullptr || !post_stays_with_host(*communicator))
      return leave_call(comm, communicator, exception);
  }
  if (made == nullptr) return post_on_host(arguments, comm, request, communicator, nullptr);
  MpiOperation& operation = *made;
  const Admission admission = admit(operation);
  if (admission == Admission::taken) return give_request(operation, request);
  int code = operation.error;
  if (admission == Admission::failed)
    code = raise_error_of_call(comm, code);
  else
    code = post_on_host(arguments, comm, request, communicator, &operation);
  give_back(&operation);
  return code;
}

template <class Arguments>
[[gnu::noinline, gnu::cold]] int post_recorded(const Arguments& arguments, MPI_Comm comm, MPI_Request* request,
                                               const void* site) {
  RecordedCall recorded(Arguments::collective, Form::nonblocking, take_site(site));
  recorded.read(arguments.prepare, request != nullptr ? known_communicator(comm) : nullptr);
  const int code = post_unrecorded(arguments, comm, request);
  if (code == MPI_SUCCESS) recorded.end(comm, request);
  return code;
}

template <class Arguments>
[[gnu::always_inline]] inline int post(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) {
  if (recorder() != nullptr) [[unlikely]]
    return post_recorded(arguments, comm, request, __builtin_return_address(0));
  return post_unrecorded(arguments, comm, request);
}

}  // namespace plait::plugin
