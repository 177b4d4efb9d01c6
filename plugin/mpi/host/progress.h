// Moves this process's operations on, within the host's own progress.
#pragma once

#include "plugin/layer.h"
#include "runtime/progress/progress.h"

namespace plait::plugin {

// Of all of the process's communicators.
Progress& own_progress();

// Whether the host moves operations on while the program waits in it. Without that no call may be taken: a rank that
// waits in a collective of the host's would keep others from the end of theirs.
bool host_drives_progress();

// Whether the program's calls of MPI_Wait come to binding::wait().
bool waits_come_here();

// For a wait that the host gave to us: one turn of ours and of the host's; where nothing moves another process gets the
// core.
void progress_of_both();

}  // namespace plait::plugin
