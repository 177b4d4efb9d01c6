// Communicators of ours.
#pragma once

#include <mpi.h>

#include <utility>

#include "core/status.h"

namespace plait::plugin {

// A communicator of ours with the ranks of one of the program's. Errors on it are returned.
class PrivateCommunicator {
 public:
  PrivateCommunicator() = default;
  explicit PrivateCommunicator(MPI_Comm handle) : handle_(handle) {}
  PrivateCommunicator(PrivateCommunicator&& other) noexcept : handle_(std::exchange(other.handle_, MPI_COMM_NULL)) {}
  PrivateCommunicator& operator=(PrivateCommunicator&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~PrivateCommunicator() {
    if (handle_ != MPI_COMM_NULL) PMPI_Comm_free(&handle_);
  }
  MPI_Comm handle() const { return handle_; }
  // It is never freed: the host still works on something there that nobody waits for.
  void leave() { handle_ = MPI_COMM_NULL; }

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
};

// Collective over `user`; blocks. Not a duplicate: that would call the program's attribute copy functions. Fails with
// `unavailable` where the host makes none.
Result<PrivateCommunicator> make_private_communicator(MPI_Comm user);

}  // namespace plait::plugin
