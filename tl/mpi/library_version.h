// The MPI library of this process in its own words.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <string>

namespace plait::tl {

// The first line of what MPI_Get_library_version says: "Open MPI v4.1.4, package: ...", "MPICH Version: 4.0.2". Local;
// MPI need not be initialised.
inline std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> buffer{};
  int length = 0;
  if (PMPI_Get_library_version(buffer.data(), &length) != MPI_SUCCESS) return "unknown";
  std::string line(buffer.data());
  line.erase(std::min(line.find('\n'), line.size()));
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

// The same without what follows the release, which says where and how it was built: "Open MPI v4.1.4".
inline std::string library_release() {
  std::string line = library_version();
  line.erase(std::min(line.find(','), line.size()));
  return line;
}

}  // namespace plait::tl
