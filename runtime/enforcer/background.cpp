#include "runtime/enforcer/background.h"

#include <sys/resource.h>
#include <unistd.h>

namespace plait::runtime {

// Not less: ranks that wait take all that is left of their cores.
void run_in_the_background() {
  constexpr int niceness = 10;
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness));  // else the program's own
}

}  // namespace plait::runtime
