// Which thread is at work on the shared heap.
#pragma once

#include <mutex>

namespace plait::tl {

namespace detail {
// The calling thread is between the handlers below: it holds the shared heap's lock.
extern thread_local constinit bool thread_is_forking __attribute__((tls_model("initial-exec"), visibility("hidden")));
// What the calling thread maps and gives back is the shared heap's own doing, not the program's.
extern thread_local constinit bool thread_in_shared_heap
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

class OwnCalls {
 public:
  OwnCalls() { thread_in_shared_heap = true; }
  ~OwnCalls() { thread_in_shared_heap = before_; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  bool before_ = thread_in_shared_heap;
};
}  // namespace detail

// Around fork() the forking thread holds the lock itself, while other libraries' handlers may allocate.
class SharedHeapLock {
 public:
  explicit SharedHeapLock(std::mutex& guard) : guard_(guard) { lock(); }
  ~SharedHeapLock() { unlock(); }
  SharedHeapLock(const SharedHeapLock&) = delete;
  SharedHeapLock& operator=(const SharedHeapLock&) = delete;
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
