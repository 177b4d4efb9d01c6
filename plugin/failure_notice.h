// Tells the other ranks of a communicator that this one has failed, by a message of the host MPI's: whatever channel
// they wait on, their waits end. Within a node the shared memory does so (tl/shm/failure_marks.h).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/status.h"

namespace plait::plugin {

// Of one communicator. Not thread-safe.
class FailureNotice {
 public:
  // `communicator` tells it from an earlier one that had the same handle. `others` are told by this rank.
  FailureNotice(std::uint64_t communicator, std::vector<int> others)
      : communicator_(communicator), others_(std::move(others)) {}

  // A glance, which also lets the host move its own messages on. `messages` is the communicator of ours.
  void look(MPI_Comm messages) {
    int found = 0;
    MPI_Status status;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, tag, messages, &found, &status) == MPI_SUCCESS && found != 0) [[unlikely]]
      hear(messages, status);
  }
  // Not ok once another rank has failed: peer_failed, with the rank and its reason. Its address stays.
  const Status& heard() const { return heard_; }

  // The first call counts, and only where nothing was heard: then all know. Blocks for a tenth of a second at most.
  void tell(MPI_Comm messages, const Status& cause);

 private:
  static constexpr int tag = 32767;

  void hear(MPI_Comm messages, const MPI_Status& found);

  std::uint64_t communicator_;
  std::vector<int> others_;
  bool told_ = false;
  Status heard_;
};

}  // namespace plait::plugin
