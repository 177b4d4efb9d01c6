// What figures were measured on.
#pragma once

#include <algorithm>
#include <map>
#include <string>

namespace plait::plan {

// Names ("mpi", "hardware") with what stands for them, as text.
using Fingerprint = std::map<std::string, std::string>;

// An MPI library's name, of what MPI_Get_library_version says: its first line, "Open MPI v4.1.4, package: ...".
inline std::string mpi_library_name(std::string version) {
  version.erase(std::min(version.find('\n'), version.size()));
  std::replace(version.begin(), version.end(), '\t', ' ');
  return version;
}

// Of the name the release, without where and how it was built: "Open MPI v4.1.4".
inline std::string mpi_release_name(std::string library) {
  library.erase(std::min(library.find(','), library.size()));
  return library;
}

}  // namespace plait::plan
