// The arena's lock, for its own source files.
#pragma once

#include <mutex>

#include "tl/shm/arena.h"

namespace plait::tl {

// Around fork() the forking thread holds the lock itself, while other libraries' handlers may allocate.
class Arena::Lock {
 public:
  explicit Lock(std::mutex& guard) : guard_(guard) { lock(); }
  ~Lock() { unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
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
