#include "plugin/ucc/oob/gathering.h"

#include <sched.h>

#include <cstring>

namespace plait::plugin {

bool OwnGathering::run(const void* mine, std::size_t bytes, void* all) noexcept {
  if (!carrier_.start(mine, bytes, all)) return false;
  Turn turn = Turn::waiting;
  while ((turn = carrier_.test()) == Turn::waiting) sched_yield();
  return turn == Turn::done;
}

bool MirrorGathering::run(const void* mine, std::size_t bytes, void* all) noexcept {
  for (std::size_t rank = 0; bytes > 0 && rank < static_cast<std::size_t>(ranks_); ++rank)
    std::memcpy(static_cast<std::byte*>(all) + rank * bytes, mine, bytes);
  return true;
}

bool HandedGathering::run(const void* mine, std::size_t bytes, void* all) noexcept {
  std::unique_lock lock(guard_);
  if (closed_) return false;
  mine_ = mine;
  bytes_ = bytes;
  all_ = all;
  state_ = State::wanted;
  changed_.wait(lock, [this] { return state_ == State::done || state_ == State::failed; });
  const bool done = state_ == State::done;
  state_ = State::idle;
  return done;
}

void HandedGathering::turn() {
  const std::scoped_lock lock(guard_);
  if (state_ == State::wanted) state_ = carrier_.start(mine_, bytes_, all_) ? State::under_way : State::failed;
  if (state_ == State::under_way) {
    const Turn turn = carrier_.test();
    if (turn == Turn::waiting) return;
    state_ = turn == Turn::done ? State::done : State::failed;
  }
  if (state_ != State::idle) changed_.notify_all();
}

void HandedGathering::close() {
  const std::scoped_lock lock(guard_);
  closed_ = true;
  if (state_ == State::wanted) state_ = State::failed;
  changed_.notify_all();
}

}  // namespace plait::plugin
