// Handlers of fork() that belong next to the fork itself: registered before those of all other libraries.
#pragma once

namespace plait::plugin::preload {

// As in Surroundings (implementation.h): like pthread_atfork(), but `prepare` runs after the handlers of all libraries,
// `parent` and `child` before them. Once in a process. Returns 0, or EEXIST.
int handle_fork(void (*prepare)(), void (*parent)(), void (*child)());

}  // namespace plait::plugin::preload
