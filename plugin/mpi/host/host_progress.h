// The one thing that Plait asks of an MPI library beyond MPI.
#pragma once

namespace plait::plugin {

// Has `progress` called from within the host's own progress, so that every call of the program that waits in the host
// moves our operations on, and may call the host. False where the host has no place for it. Once, after MPI's start.
bool join_host_progress(int (*progress)());

}  // namespace plait::plugin
