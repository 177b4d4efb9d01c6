#include "plugin/ucc/oob/set_up_thread.h"

#include <pthread.h>
#include <sched.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace plait::plugin {

// The program's signals are its own threads'.
bool SetUpThread::start(HandedGathering& gathering, std::function<void()> set_up) {
  gathering_ = &gathering;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this, set_up = std::move(set_up)] {
      set_up();
      done_.store(true, std::memory_order_release);
    });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

bool SetUpThread::turn() {
  gathering_->turn();
  if (!done_.load(std::memory_order_acquire)) return false;
  if (thread_.joinable()) thread_.join();
  return true;
}

SetUpThread::~SetUpThread() {
  if (!thread_.joinable()) return;
  while (!turn()) sched_yield();
}

}  // namespace plait::plugin
