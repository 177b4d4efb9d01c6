// The way of every blocking call, from the program into Plait or to the host.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>

#include "plugin/layer.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/call/record_call.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/communicator/communicators.h"
#include "plugin/mpi/communicator/leave_call.h"
#include "plugin/mpi/host/host_call.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/decide.h"
#include "runtime/execution/request.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "tl/trace.h"

namespace plait::plugin {

// Where calls are taken: the communicator's state, else nullptr. Throws where memory is short: the other ranks may have
// theirs.
inline MpiCommunicator* serving(MPI_Comm comm) {
  if (phase() == Phase::before) [[unlikely]]
    start_late();
  return accepting() ? find_communicator(comm) : nullptr;
}

// For who only looks on: where memory is short, the call itself says so.
inline MpiCommunicator* known_communicator(MPI_Comm comm) noexcept {
  try {
    return serving(comm);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Arguments are those of plugin/mpi/call/arguments.h. `communicator`: serving(comm). A part of
// the bindings' functions: another call and its saved registers show in the time of a small one.
template <class Arguments>
[[gnu::always_inline]] inline int enter_unrecorded(const Arguments& arguments, MPI_Comm comm,
                                                   MpiCommunicator* communicator) {
  const bool measuring = reporting();
  const bool hopeless = communicator == nullptr || hosts_for_good(*communicator);
  if (hopeless && !measuring) {
    note_host_call();
    return arguments.on_host(comm);
  }
  const char* unread = nullptr;
  if (may_stay_unread(Arguments::collective) && !hopeless) {
    unread = leave_unread(*communicator, Arguments::collective);
    if (unread != nullptr && !measuring) {
      note_host_call();
      return arguments.on_host(comm);
    }
  }
  const std::uint64_t begin_ns = measuring ? monotonic_ns() : 0;
  Request request;
  request.call.collective = Arguments::collective;
  if (communicator != nullptr) request.lists = &communicator->space;
  const char* reason = nullptr;
  TimedCall* sample = nullptr;
  const bool readable = communicator != nullptr && !communicator->inter;  // else the arguments mean something else
  try {
    if (readable) reason = arguments.prepare(*communicator, request);
  } catch (const std::exception& exception) {
    if (!stay_with_host(*communicator)) return leave_call(comm, communicator, exception);
    reason = plugin::reasons::no_memory;
  }
  if (hopeless) {
    if (communicator != nullptr) reason = communicator->host_reason;
  } else if (unread != nullptr) {
    reason = unread;
  } else if (reason == nullptr) {
    const Outcome outcome = accelerate(*communicator, request, begin_ns);
    if (outcome.is_done()) return outcome.code();
    reason = outcome.reason();
    sample = outcome.sample();
  }
  note_host_call();
  if (request.ordered != nullptr) [[unlikely]]
    note_lost_order(Arguments::collective, *communicator, reason);
  const int code = arguments.on_host(comm);
  if (sample != nullptr) [[unlikely]]
    end_host_call(*communicator, *sample);
  if (measuring)
    count_host_call({Arguments::collective, comm, communicator, readable ? &request.call : nullptr, reason}, begin_ns);
  return code;
}

// Apart, so that it does not show in the others' time.
template <class Arguments>
[[gnu::noinline, gnu::cold]] int enter_recorded(const Arguments& arguments, MPI_Comm comm,
                                                MpiCommunicator* communicator, const void* site) {
  RecordedCall recorded(Arguments::collective, Form::blocking, take_site(site));
  recorded.read(arguments.prepare, communicator);
  const int code = enter_unrecorded(arguments, comm, communicator);
  recorded.end(comm, nullptr);
  return code;
}

template <class Arguments>
[[gnu::always_inline]] inline int enter(const Arguments& arguments, MPI_Comm comm, MpiCommunicator* communicator) {
  if (recorder() != nullptr) [[unlikely]]
    return enter_recorded(arguments, comm, communicator, __builtin_return_address(0));
  return enter_unrecorded(arguments, comm, communicator);
}

template <class Arguments>
[[gnu::always_inline]] inline int enter(const Arguments& arguments, MPI_Comm comm) {
  MpiCommunicator* communicator = nullptr;
  try {
    communicator = serving(comm);
  } catch (const std::exception& exception) {
    return leave_call(comm, nullptr, exception);
  }
  return enter(arguments, comm, communicator);
}

}  // namespace plait::plugin
