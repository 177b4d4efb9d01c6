// Code that waits, run a part at a time: on a stack of its own, which it leaves while it waits and comes back to.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace plait {

class Fiber {
 public:
  // `body` must not throw.
  explicit Fiber(std::function<void()> body);
  // A body that has not come to its end is abandoned: what stands on its stack is not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it pauses or ends; true when it has ended. Always from one thread, not from within a fiber.
  bool resume();

  // Whether the caller runs in a fiber's body; pause() goes back to its resume(). Precondition for pause(): inside().
  static bool inside();
  static void pause();

 private:
  struct State;
  static void enter(unsigned low, unsigned high);
  std::unique_ptr<State> state_;
};

}  // namespace plait
