#include "plugin/mpi/host/errors.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "plugin/mpi/host/host.h"

namespace plait::plugin {
namespace {

constexpr std::string_view prefix = "plait: ";

using Text = std::array<char, MPI_MAX_ERROR_STRING>;

Text text_of(const std::string& message) {
  Text text{};
  std::snprintf(text.data(), text.size(), "%s%s", prefix.data(), message.c_str());
  return text;
}

// One code for all errors of a kind, whose text is that of the latest: MPI never takes codes back, so that one each
// would grow.
struct OwnCode {
  std::mutex guard;
  int code = MPI_SUCCESS;
};
constinit OwnCode failures, arguments;

// MPI_ERR_OTHER where there is none to be had.
int code_of(OwnCode& own, bool own_class, const std::string& message) {
  const std::scoped_lock lock(own.guard);
  int error_class = MPI_ERR_OTHER;
  if (own.code == MPI_SUCCESS && ((own_class && PMPI_Add_error_class(&error_class) != MPI_SUCCESS) ||
                                  PMPI_Add_error_code(error_class, &own.code) != MPI_SUCCESS))
    return MPI_ERR_OTHER;
  PMPI_Add_error_string(own.code, text_of(message).data());
  return own.code;
}

// Its 4.0 forgets the texts of codes that are added to its classes.
#ifdef MPICH_VERSION
constexpr bool own_class_of_failures = true;
#else
constexpr bool own_class_of_failures = false;
#endif

}  // namespace

int argument_error_code(const Status& status) {
  const int code = code_of(arguments, true, status.message());
  return code == MPI_ERR_OTHER ? MPI_ERR_ARG : code;
}

int error_code(const Status& status) { return code_of(failures, own_class_of_failures, status.message()); }

Status status_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (PMPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return {Code::internal, "an unknown error"};
  const std::string_view said(text.data());
  return {Code::internal, std::string(said.starts_with(prefix) ? said.substr(prefix.size()) : said)};
}

int raise_error(MPI_Comm comm, const Status& status) { return raise_error(comm, error_code(status)); }

int raise_error(MPI_Comm comm, int code) {
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

int raise_error_of_call(MPI_Comm comm, const Status& status) { return raise_error_of_call(comm, error_code(status)); }

int raise_error_of_call(MPI_Comm comm, int code) { return host().raises_errors ? code : raise_error(comm, code); }

}  // namespace plait::plugin
