#include "plugin/errors.h"

#include <array>
#include <cstdio>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "plugin/host.h"

namespace plait::plugin {
namespace {

constexpr std::string_view prefix = "plait: ";

using Text = std::array<char, MPI_MAX_ERROR_STRING>;

Text text_of(const std::string& message) {
  Text text{};
  std::snprintf(text.data(), text.size(), "%s%s", prefix.data(), message.c_str());
  return text;
}

// One code for all our errors, whose text is that of the latest: MPI never takes codes back, so that one each would
// grow.
int code_of(const std::string& message) {
  static constinit std::mutex guard;
  static constinit int code = MPI_SUCCESS;
  const std::scoped_lock lock(guard);
  if (code == MPI_SUCCESS && PMPI_Add_error_code(MPI_ERR_OTHER, &code) != MPI_SUCCESS) return MPI_ERR_OTHER;
  PMPI_Add_error_string(code, text_of(message).data());
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
  PMPI_Add_error_string(code, text_of(message).data());
  return code;
}

}  // namespace

Status status_of(const std::exception& exception) noexcept {
  try {
    if (dynamic_cast<const std::bad_alloc*>(&exception) == nullptr) return {Code::unavailable, exception.what()};
  } catch (const std::exception&) {
  }
  return {Code::unavailable, "out of memory"};  // short enough for a string without memory of its own
}

int argument_error_code(const Status& status) { return code_of_argument(status.message()); }

int error_code(const Status& status) { return code_of(status.message()); }

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
