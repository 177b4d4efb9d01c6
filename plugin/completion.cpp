#include "plugin/completion.h"

#include <mpi.h>

#include "plugin/host.h"

namespace plait::plugin {

bool waits_come_here() { return host().start_request == nullptr; }

void complete_request(Operation& operation) {
  if (operation.abandoned)
    give_back(&operation);
  else if (host().complete_request != nullptr)
    host().complete_request(operation);
  else
    PMPI_Grequest_complete(operation.handle);
}

}  // namespace plait::plugin
