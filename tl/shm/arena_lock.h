// Which thread is at work on the arena.
#pragma once

#include <mutex>

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

// Around fork() the forking thread holds the lock itself, while other libraries' handlers may allocate.
class ArenaLock {
 public:
  explicit ArenaLock(std::mutex& guard) : guard_(guard) { lock(); }
  ~ArenaLock() { unlock(); }
  ArenaLock(const ArenaLock&) = delete;
  ArenaLock& operator=(const ArenaLock&) = delete;
  void lock() {
    if (!detail::thread_is_forking) guard_.lock();
  }
  void unlock() {
    if (!detail::thread_is_forking) guard_.unlock();
  }

 private:
  std::mutex& guard_;
};

}  // namespace plait::tl
