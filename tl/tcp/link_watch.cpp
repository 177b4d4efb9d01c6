#include "tl/tcp/link_watch.h"

#include <algorithm>

namespace plait::tl::detail {
namespace {

// Attempts in a row that remain unanswered, each after twice as long as the one before: after 0.2, 0.6, 1.4, 3 and 6.2
// s, where the way there is short; those to connect after 1, 3 and 7 s.
constexpr int lost_attempts = 5, lost_connects = 3;

}  // namespace

bool LinkWatch::cut(const Socket& socket) {
  const Unanswered now = unanswered(socket);
  if (!on_) {
    ask_for_life(socket, true);
    on_ = true;
    before_ = now.attempts;
  }
  before_ = std::min(before_, now.attempts);
  return now.attempts >= (now.connecting ? lost_connects : lost_attempts) && now.attempts > before_;
}

void LinkWatch::end(const Socket& socket) {
  ask_for_life(socket, false);
  on_ = false;
}

}  // namespace plait::tl::detail
