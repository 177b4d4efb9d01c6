#include "tuner/text/launcher_options.h"

namespace plait::tuner {

Launcher launcher_of(std::string_view mpi) {
  return mpi.find("Open MPI") != mpi.npos ? Launcher::openmpi : Launcher::hydra;
}

std::string by_slot(Launcher launcher, int ranks_a_node) {
  return launcher == Launcher::openmpi ? "mpirun --map-by slot" : "mpiexec -ppn " + std::to_string(ranks_a_node);
}

std::string by_node(Launcher launcher) {
  return launcher == Launcher::openmpi ? "mpirun --map-by node" : "mpiexec -ppn 1";
}

std::string ranks_a_node(Launcher launcher, int count) {
  const std::string number = std::to_string(count);
  return launcher == Launcher::openmpi ? "mpirun --map-by ppr:" + number + ":node" : "mpiexec -ppn " + number;
}

std::string bound_to_cores(Launcher launcher) {
  return launcher == Launcher::openmpi ? "mpirun --bind-to core" : "mpiexec -bind-to core";
}

std::string dealt_out_to(Launcher launcher, std::string_view level) {
  const std::string name(level == "package" ? "socket" : level == "l3" ? "l3cache" : level);
  return launcher == Launcher::openmpi ? "mpirun --map-by " + name + " --bind-to core"
                                       : "mpiexec -bind-to core -map-by " + name;
}

}  // namespace plait::tuner
