// Persistent collectives (MPI 4.0, section 6.13; Open MPI 4.1 has them with the prefix MPIX_).
//
// A generalized request cannot be persistent. The program is given a persistent receive of an empty message from this
// process to itself, on a communicator of ours: started with each start of the collective, and sent to when that is
// complete. Everything that MPI does with requests then holds for it.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <utility>

#include "plugin/communicator.h"
#include "plugin/nonblocking.h"
#include "plugin/operation.h"
#include "plugin/progress.h"
#include "plugin/request.h"

namespace plait {

struct PersistentRequest {
  MPI_Request handle = MPI_REQUEST_NULL;
  int tag = 0;
  std::function<int(PersistentRequest&)> post;  // the collective once; an MPI error code
  HeldTypes types;
  bool active = false;
  bool freed = false;  // by the program, while it was active
};

// Makes what the program has of ours; `persistent.post` is called at each start.
int add_persistent(std::unique_ptr<PersistentRequest> persistent, MPI_Request* request);

// One start of a collective whose completion `persistent` waits for.
template <class Arguments>
int post_persistent(const Arguments& arguments, MPI_Comm comm, PersistentRequest& persistent) {
  Communicator* communicator = serving(comm);
  if (communicator == nullptr) return MPI_ERR_COMM;
  Operation& operation = *take_operation(*communicator, Arguments::collective);
  operation.persistent = &persistent;
  switch (prepare_operation(arguments, operation)) {
    case Admission::host:
      note_host_call();
      if (const int code = arguments.on_host(comm, &operation.host_request); code != MPI_SUCCESS) {
        give_back(&operation);
        return code;
      }
      break;
    case Admission::failed: {
      const int error = operation.error;
      give_back(&operation);
      return raise_error(comm, error);
    }
    default:
      break;
  }
  hand_over(operation);
  return MPI_SUCCESS;
}

// The way of every call that makes a persistent collective.
template <class Arguments>
int make_persistent(const Arguments& arguments, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  Communicator* communicator = request != nullptr ? serving(comm) : nullptr;
  const bool hopeless = communicator == nullptr || communicator->road == Road::host || !host_drives_progress();
  if (hopeless) return arguments.on_host(comm, info, request);
  auto persistent = std::make_unique<PersistentRequest>();
  Request described;
  Lists lists;
  described.call.collective = Arguments::collective;
  described.lists = &lists;
  const char* reason = arguments.prepare(*communicator, described);
  const bool user_defined = described.reducer == &described.user.reducer();
  if (reason != nullptr || user_defined) return arguments.on_host(comm, info, request);
  if (const int error = persistent->types.hold(described); error != MPI_SUCCESS) return raise_error(comm, error);
  persistent->post = [held = persistent->types.replace_in(arguments), comm](PersistentRequest& started) {
    return post_persistent(held, comm, started);
  };
  return add_persistent(std::move(persistent), request);
}

// Called when the operation behind it is complete; gives the operation back.
void complete_persistent(Operation& operation);

}  // namespace plait

namespace plait::door {

int start(MPI_Request* request);
int startall(int count, MPI_Request requests[]);
int request_free(MPI_Request* request);

}  // namespace plait::door
