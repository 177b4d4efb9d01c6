// Whether the other ranks' processes of this node are still there. Nobody ends a job of which one was killed, where
// there is no launcher: the others would wait for it for ever. Between nodes connections that break say so.
#pragma once

#include <sys/types.h>

#include <vector>

#include "core/status.h"
#include "plugin/layer.h"
#include "runtime/oob/oob.h"

namespace plait::plugin {

class PeerProcesses {
 public:
  // A step of all ranks. Throws where memory is short before this one has taken part.
  Status meet(Oob& oob);
  // Not ok once one has ended. Asks the kernel of each.
  Status look() const;

 private:
  struct Peer {
    int rank;
    pid_t process;
  };
  std::vector<Peer> peers_;  // that this process can see
};

}  // namespace plait::plugin
