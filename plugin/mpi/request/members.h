// The ranks of a communicator of the program's that take part in a plan of ours, on a communicator of their own.
#pragma once

#include <mpi.h>

#include <memory>

#include "core/status.h"
#include "plugin/layer.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "runtime/reshard/members.h"

namespace plait::plugin {

class MpiMembers final : public Members {
 public:
  explicit MpiMembers(MPI_Comm comm) : comm_(comm) {}
  // The program's.
  MPI_Comm comm() const { return comm_; }

  Status part(bool takes_part) override;
  Oob& oob() override { return oob_; }
  std::unique_ptr<Communicator> make_communicator() override;

 private:
  MPI_Comm comm_;
  MpiOob oob_{MPI_COMM_NULL};
};

}  // namespace plait::plugin
