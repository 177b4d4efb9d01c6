#include "plugin/errors.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "plugin/host.h"

namespace plait::plugin {
namespace {

// MPICH 4.0 forgets the texts of codes that are added to its classes.
bool add_code(int& code) {
  int error_class = MPI_ERR_OTHER;
#ifdef MPICH_VERSION
  if (PMPI_Add_error_class(&error_class) != MPI_SUCCESS) return false;
#endif
  return PMPI_Add_error_code(error_class, &code) == MPI_SUCCESS;
}

// One code for all our errors, whose text is that of the latest: MPI never takes codes back, so that one each would
// grow.
int code_of(const std::string& message) {
  static constinit std::mutex guard;
  static constinit int code = MPI_SUCCESS;
  const std::scoped_lock lock(guard);
  if (code == MPI_SUCCESS && !add_code(code)) return MPI_ERR_OTHER;
  const std::string text = ("plait: " + message).substr(0, MPI_MAX_ERROR_STRING - 1);
  PMPI_Add_error_string(code, text.c_str());
  return code;
}

int code_of_argument(const std::string& message) {
  static constinit std::mutex guard;
  static constinit int code = MPI_SUCCESS;
  const std::scoped_lock lock(guard);
  int own_class = MPI_ERR_OTHER;
  if (code == MPI_SUCCESS &&
      (PMPI_Add_error_class(&own_class) != MPI_SUCCESS || PMPI_Add_error_code(own_class, &code) != MPI_SUCCESS))
    return MPI_ERR_ARG;
  const std::string text = ("plait: " + message).substr(0, MPI_MAX_ERROR_STRING - 1);
  PMPI_Add_error_string(code, text.c_str());
  return code;
}

}  // namespace

int argument_error_code(const Status& status) { return code_of_argument(status.message()); }

int error_code(const Status& status) { return code_of(status.message()); }

int raise_error(MPI_Comm comm, const Status& status) { return raise_error(comm, error_code(status)); }

int raise_error(MPI_Comm comm, int code) {
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

int raise_error_of_call(MPI_Comm comm, const Status& status) { return raise_error_of_call(comm, error_code(status)); }

int raise_error_of_call(MPI_Comm comm, int code) { return host().raises_errors ? code : raise_error(comm, code); }

}  // namespace plait::plugin
