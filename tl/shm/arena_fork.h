// fork() with an arena: the child gets its own copies of all blocks, as they are at the time of the fork.
#pragma once

namespace plait::tl {

namespace detail {
// The calling thread is between the handlers below: it holds the arena's lock.
extern thread_local constinit bool thread_is_forking __attribute__((tls_model("initial-exec"), visibility("hidden")));
}  // namespace detail

// For pthread_atfork(). The copy is made before the fork: no other way leaves both processes free to write at once
// without either waiting for the other. A private mapping of the file in the child would show it what the parent
// writes afterwards; one in the parent would hide from the peers what it writes.
struct ArenaFork {
  static void prepare();
  static void parent();
  static void child();
};

}  // namespace plait::tl
