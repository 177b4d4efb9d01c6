// The set-up of a communicator that a non-blocking call began: such a call must return whatever the other ranks do, so
// that the set-up goes on a part at a time, whenever MPI makes progress.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>

#include "core/fiber.h"
#include "core/status.h"
#include "plugin/bootstrap.h"
#include "plugin/communicator.h"

namespace plait {

class SetUpTask {
 public:
  // Posts the first communication at once where it is one on the program's communicator: it must be in order with the
  // program's own collectives. Begins when nothing runs on what it replaces.
  explicit SetUpTask(Communicator& communicator);

  // A part of the work; at its end the road that the communicator takes from now on.
  std::optional<Road> advance();

 private:
  void run();

  Communicator& communicator_;
  MPI_Comm duplicate_ = MPI_COMM_NULL;
  MPI_Request duplicating_ = MPI_REQUEST_NULL;
  bool failed_ = false;
  Result<std::unique_ptr<Machinery>> made_;
  Fiber fiber_;
};

}  // namespace plait
