#include "plugin/launcher/launcher_turn.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace plait::plugin {
namespace {

constexpr timespec between_looks{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr int looks_a_second = 1000;

}  // namespace

// The turn is a name without a file, which one socket of a machine has at a time and the kernel takes back.
LauncherTurn::LauncherTurn(std::string_view job, int turn, int longest_seconds) noexcept
    : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int written = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "plait-turn-%d-%.*s", turn % at_once,
                                    static_cast<int>(std::min<std::size_t>(job.size(), 64)), job.data());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(written));
  if (socket_ < 0) return;
  for (int looks = 0; looks < longest_seconds * looks_a_second; ++looks) {
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&name), length) == 0 || errno != EADDRINUSE) return;
    nanosleep(&between_looks, nullptr);
  }
}

LauncherTurn::~LauncherTurn() {
  if (socket_ >= 0) close(socket_);
}

}  // namespace plait::plugin
