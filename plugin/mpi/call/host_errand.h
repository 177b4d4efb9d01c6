// A call of the host's that does not block, with copies of what lies in memory of a device: the program's request is
// one of ours, as the host's own is complete before the results are on the device.
#pragma once

#include <mpi.h>

#include <memory>

#include "plugin/layer.h"
#include "plugin/mpi/call/host_copies.h"
#include "plugin/mpi/communicator/communicator.h"
#include "runtime/progress/operation.h"

namespace plait::plugin {

class HostErrand final : public runtime::Errand {
 public:
  HostErrand() = default;
  ~HostErrand() override;
  HostErrand(const HostErrand&) = delete;
  HostErrand& operator=(const HostErrand&) = delete;

  HostCopies copies;
  MPI_Request inner = MPI_REQUEST_NULL;  // the host's
  bool persistent = false;

  // Before the host's call. What fails is the error of the whole, once the host's call is over.
  void bring() noexcept;
  int start() noexcept override;
  bool turn() noexcept override;
  int end() noexcept override;

 private:
  int not_brought_ = MPI_SUCCESS;
  int error_ = MPI_SUCCESS;
};

// The errand's call is made: gives the program a request for it. `communicator`: nullptr: Plait is turned off. Return
// an MPI error code. They throw std::bad_alloc.
int post_errand(std::unique_ptr<HostErrand> errand, Collective collective, MpiCommunicator* communicator,
                MPI_Request* request);
int make_errand(std::unique_ptr<HostErrand> errand, Collective collective, MpiCommunicator* communicator,
                MPI_Request* request);

}  // namespace plait::plugin
