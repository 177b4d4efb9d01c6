// Another user of the machine connects to a worker of UCX while it is being made: the process goes on.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "tl/tcp/socket.h"
#include "tl/ucx/rail_worker.h"

namespace plait::tl {
namespace {

// From the moment at which somebody listens.
class Strangers {
 public:
  void are_there(bool there) { there_ = there; }
  int number() const { return static_cast<int>(connected_.size()); }
  void connect_to(int listener) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (!there_ || getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
    for (int stranger = 0; stranger < 8; ++stranger) connect(address, stranger);
    let_accept_ = true;
  }
  // Another thread of UCX accepts them; what it has accepted is found by the next look at all connections.
  void wait_until_accepted() {
    if (let_accept_.exchange(false)) usleep(20'000);
  }
  void leave() {
    connected_.clear();
    there_ = false;
  }

 private:
  // Says too little, or nothing any more.
  void connect(const sockaddr_in& address, int stranger) {
    const Socket& made = connected_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
    static_cast<void>(send(made.descriptor(), "who are you?", stranger % 2 == 0 ? 4 : 12, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (stranger >= 4) shutdown(made.descriptor(), SHUT_RDWR);
  }

  std::atomic<bool> there_ = false, let_accept_ = false;
  std::vector<Socket> connected_;
};

Strangers strangers;

template <class Function>
Function next_of(const char* name, Function) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace plait::tl

extern "C" __attribute__((visibility("default"))) int listen(int listener, int most) noexcept {
  static const auto real = plait::tl::next_of("listen", &listen);
  const int result = real(listener, most);
  if (result == 0) plait::tl::strangers.connect_to(listener);
  return result;
}

extern "C" __attribute__((visibility("default"))) int epoll_wait(int set, epoll_event* events, int most,
                                                                 int milliseconds) {
  static const auto real = plait::tl::next_of("epoll_wait", &epoll_wait);
  if (milliseconds == 0) plait::tl::strangers.wait_until_accepted();
  return real(set, events, most, milliseconds);
}

namespace plait::tl {
namespace {

TEST(UcxAmongStrangers, AWorkerIsMadeAmongStrangers) {
  const auto ucp = system_ucp();
  if (!ucp.ok()) GTEST_SKIP() << ucp.status().message();
  Rail rail;
  rail.name = rail.network = "lo";
  for (int time = 0; time < 5; ++time) {
    strangers.are_there(true);
    const auto worker = RailWorker::open(**ucp, rail, {});
    ASSERT_TRUE(worker.ok()) << worker.status().message();
    EXPECT_GE(strangers.number(), 8) << "nobody listened";
    strangers.leave();
  }
}

}  // namespace
}  // namespace plait::tl
