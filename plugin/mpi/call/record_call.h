// The calls of a program that is recorded (PLAIT_RECORD), on their way through the bindings.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>

#include "plugin/layer.h"
#include "plugin/mpi/communicator/call_space.h"
#include "plugin/mpi/communicator/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/recorder/recorder.h"
#include "tl/trace.h"

namespace plait::plugin {

// Reads a call's arguments beside what becomes of the call, so that those that the host keeps are seen alike. On the
// stack of the call. Nothing here throws.
class RecordedCall {
 public:
  RecordedCall(Collective collective, Form form, const void* site) : form_(form), site_(site) {
    request_.call.collective = collective;
    request_.lists = &space_;
  }

  // `prepare`: plugin/mpi/call/arguments.h. `communicator`: nullptr where the call's is not known.
  template <class Prepare>
  void read(const Prepare& prepare, MpiCommunicator* communicator) noexcept {
    communicator_ = communicator;
    try {
      if (communicator != nullptr && !communicator->inter) prepare(*communicator, request_);
    } catch (const std::exception&) {  // the call's own road says so
    }
    begin_ns_ = tl::monotonic_ns();
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

  // The call is through, or was posted, or has made a persistent request.
  void end(MPI_Comm comm, const MPI_Request* request) noexcept;

 private:
  Form form_;
  const void* site_;
  MpiCommunicator* communicator_ = nullptr;
  CallSpace space_;  // of the call itself: libraries with much thread-local memory do not load beside each other
  Request request_;
  std::uint64_t begin_ns_ = 0;
};

// Where the program's code goes on after the call that a binding is in: told by the entry that the program called,
// else the binding's own caller.
void note_site(const void* site);
const void* take_site(const void* otherwise);

// As PLAIT_RECORD says, on the ranks that have a file to write; and what the program did, into it.
void start_recorder();
void finish_recorder();

}  // namespace plait::plugin
