#include "plugin/mpi/host/host.h"

namespace plait::plugin {

constinit Host detail::host;

void install_host(const Host& host) { detail::host = host; }

}  // namespace plait::plugin
