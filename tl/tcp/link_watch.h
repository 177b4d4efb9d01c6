// Whether a connection on which something has been awaited for long is cut. Only then is its kernel told to find out: a
// connection on which nothing is awaited outlives any outage.
#pragma once

#include "tl/tcp/socket.h"

namespace plait::tl::detail {

class LinkWatch {
 public:
  bool on() const { return on_; }
  // In a long wait, every now and then. The first time the watch begins: what remained unanswered before does not count
  // unless one more attempt does, as the link may have come back meanwhile. Costs system calls. Precondition: the
  // socket is open.
  bool cut(const Socket& socket);
  // The wait is over. Precondition: on().
  void end(const Socket& socket);

 private:
  bool on_ = false;
  int before_ = 0;  // unanswered attempts when the watch began
};

}  // namespace plait::tl::detail
