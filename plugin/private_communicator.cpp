#include "plugin/private_communicator.h"

#include "plugin/host.h"
#include "plugin/layer.h"
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

// The program's error handler must not see a failure of something the program did not ask for. Where other threads may
// use the communicator meanwhile, their errors come first.
class QuietCommunicator {
 public:
  explicit QuietCommunicator(MPI_Comm comm) : comm_(job().concurrent ? MPI_COMM_NULL : comm) {
    if (comm_ == MPI_COMM_NULL) return;
    PMPI_Comm_get_errhandler(comm_, &before_);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~QuietCommunicator() {
    if (comm_ == MPI_COMM_NULL) return;
    PMPI_Comm_set_errhandler(comm_, before_);
    PMPI_Errhandler_free(&before_);
  }

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

}  // namespace

Result<PrivateCommunicator> make_private_communicator(MPI_Comm user) {
  const QuietCommunicator quiet(user);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  PMPI_Comm_group(user, &group);
  const int error = host().comm_create(user, group, &made);
  PMPI_Group_free(&group);
  if (error != MPI_SUCCESS || made == MPI_COMM_NULL)
    return Status(Code::unavailable, "no communicator of our own could be made");
  PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return PrivateCommunicator(made);
}

}  // namespace plait::plugin
