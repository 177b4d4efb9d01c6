#include "tl/device/process_number.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <mutex>

namespace plait::tl {

std::uint64_t process_number() {
  static constinit std::mutex guard;
  static pid_t process = 0;
  static std::uint64_t number = 0;
  const std::scoped_lock lock(guard);
  if (process != getpid()) {
    std::uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof drawn))
      drawn = static_cast<std::uint64_t>(getpid()) << 40 ^
              static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    number = drawn;
    process = getpid();
  }
  return number;
}

}  // namespace plait::tl
