// A set-up that blocks, for a caller who may not: it runs in a thread of its own, and what it does out of band is done
// by the caller's turns.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "plugin/layer.h"
#include "plugin/ucc/oob/gathering.h"

namespace plait::plugin {

class SetUpThread {
 public:
  // `set_up` gets by with `exchange`, which outlives this, and throws nothing. False where there is no thread to be
  // had: then it has not run, and the other ranks wait for this one.
  bool start(HandedGathering& gathering, std::function<void()> set_up);
  // True once it has come to its end. Does not block.
  bool turn();
  // Until then.
  ~SetUpThread();
  SetUpThread() = default;
  SetUpThread(const SetUpThread&) = delete;
  SetUpThread& operator=(const SetUpThread&) = delete;

 private:
  HandedGathering* gathering_ = nullptr;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace plait::plugin
