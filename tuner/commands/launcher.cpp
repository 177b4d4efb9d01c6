// The `plait` that users call: becomes plait-openmpi or plait-mpich beside it, which are the command as built for one
// MPI each. Under a launcher it is the one of the launcher's MPI, else any whose MPI is installed.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

namespace {

struct Build {
  std::string_view program;
  std::string_view mpi;
  const char* library;
  std::array<std::string_view, 3> ranks_have;  // variables that the launcher sets for each rank
};

// srun sets PMIX_RANK for programs of Open MPI, PMI_RANK for those of MPICH.
constexpr std::array builds = {
    Build{"plait-openmpi", "Open MPI", "libmpi.so.40", {"OMPI_COMM_WORLD_SIZE=", "PMIX_RANK=", "PMIX_RANK="}},
    Build{"plait-mpich", "MPICH", "libmpich.so.12", {"PMI_RANK=", "PMI_ID=", "MV2_COMM_WORLD_SIZE="}},
};

bool is_set(std::string_view variable) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(variable)) return true;
  }
  return false;
}

bool launched(const Build& build) { return std::any_of(build.ranks_have.begin(), build.ranks_have.end(), is_set); }

std::string own_folder() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

std::string path_of(const Build& build) { return own_folder().append(build.program); }

bool is_there(const Build& build) { return access(path_of(build).c_str(), X_OK) == 0; }

// The library stays: the process is about to become another program.
bool can_run(const Build& build) { return is_there(build) && dlopen(build.library, RTLD_LAZY) != nullptr; }

const Build* choose() {
  auto chosen = std::find_if(builds.begin(), builds.end(), launched);
  if (chosen == builds.end()) chosen = std::find_if(builds.begin(), builds.end(), can_run);
  if (chosen == builds.end()) chosen = std::find_if(builds.begin(), builds.end(), is_there);
  return chosen == builds.end() ? nullptr : &*chosen;
}

}  // namespace

int main(int, char** argv) {
  const Build* build = choose();
  if (build == nullptr) {
    std::cerr << "plait: neither plait-openmpi nor plait-mpich stands beside it in " << own_folder() << '\n';
    return 1;
  }
  execv(path_of(*build).c_str(), argv);
  std::cerr << "plait: this is a job of " << build->mpi << ", but " << path_of(*build)
            << " cannot be run: " << std::strerror(errno) << '\n';
  return 1;
}
