// fork() with an arena: the child gets its own copies of all blocks, as they are at the time of the fork.
#pragma once

namespace plait::tl {

namespace detail {
// The calling thread is between the handlers below: it holds the arena's lock.
extern thread_local constinit bool thread_is_forking __attribute__((tls_model("initial-exec"), visibility("hidden")));
// What the calling thread maps and gives back is the arena's own doing, not the program's.
extern thread_local constinit bool thread_in_arena __attribute__((tls_model("initial-exec"), visibility("hidden")));

class OwnCalls {
 public:
  OwnCalls() { thread_in_arena = true; }
  ~OwnCalls() { thread_in_arena = before_; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  bool before_ = thread_in_arena;
};
}  // namespace detail

// pthread_atfork(), or a function that does as it does. Other libraries' handlers may end threads that allocate
// (OpenBLAS's do), and write to blocks: the handlers below belong next to the fork itself, so that they want to be
// registered before all others.
using ForkRegistration = int (*)(void (*prepare)(), void (*parent)(), void (*child)());

// The copy is made before the fork: no other way leaves both processes free to write at once without either waiting for
// the other. A private mapping of the file in the child would show it what the parent writes afterwards; one in the
// parent would hide from the peers what it writes. What the program has mapped over pages of the arena stays what it
// is.
struct ArenaFork {
  static void prepare();
  static void parent();
  static void child();
};

}  // namespace plait::tl
