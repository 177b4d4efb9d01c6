// What Plait knows of one of the program's communicators. It hangs on the communicator as an MPI attribute and dies
// with it: with MPI_Comm_free, MPI_Comm_disconnect or MPI_Finalize.
#pragma once

#include <mpi.h>

#include <memory>

#include "core/status.h"
#include "plugin/layer.h"
#include "plugin/mpi/communicator/call_space.h"
#include "plugin/mpi/oob/neighbors.h"
#include "runtime/execution/communicator.h"

namespace plait::plugin {

struct MpiCommunicator final : Communicator {
  explicit MpiCommunicator(MPI_Comm comm);
  ~MpiCommunicator() override;

  Result<std::unique_ptr<Team>> connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept override;
  void decline_set_up() noexcept override;
  int raise(int code) override;

  MPI_Comm handle;
  Neighbors neighbors;  // once it is set up, if it has a topology
  int recorded = -1;    // its number in the recording (PLAIT_RECORD); -1: none yet
  CallSpace space;      // of the blocking calls, of which one runs at a time

  MpiCommunicator* next = nullptr;  // in the list of all
  MpiCommunicator* previous = nullptr;
};

// The runtime's communicators are all of this kind here.
inline MpiCommunicator& mpi_of(Communicator& communicator) { return static_cast<MpiCommunicator&>(communicator); }
inline const MpiCommunicator& mpi_of(const Communicator& communicator) {
  return static_cast<const MpiCommunicator&>(communicator);
}

}  // namespace plait::plugin
