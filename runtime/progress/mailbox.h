// Operations that one thread hands to another: any number of threads push, one takes them all.
#pragma once

#include <atomic>
#include <utility>

#include "runtime/layer.h"
#include "runtime/progress/operation.h"

namespace plait::runtime {

class Mailbox {
 public:
  void push(Operation& operation) {
    operation.next = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(operation.next, &operation, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
  }
  // In the order in which they came.
  Operation* take() {
    if (newest_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    Operation* newest = newest_.exchange(nullptr, std::memory_order_acquire);
    Operation* oldest = nullptr;
    while (newest != nullptr) {
      Operation* before = std::exchange(newest->next, oldest);
      oldest = std::exchange(newest, before);
    }
    return oldest;
  }

 private:
  std::atomic<Operation*> newest_{nullptr};
};

}  // namespace plait::runtime
