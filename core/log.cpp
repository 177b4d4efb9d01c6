#include "core/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "core/immortal.h"

namespace plait {
namespace {

std::atomic<Verbosity> chosen{Verbosity::warnings};

bool shown(Verbosity level) { return chosen.load(std::memory_order_relaxed) >= level; }

// One write call a line, past stdio: lines of several ranks on one terminal do not mix, and nothing
// waits for a stream lock that the program may hold.
void print_line(std::string_view kind, std::string_view message) {
  std::string line = "plait: ";
  line.append(kind).append(": ").append(message);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  line += '\n';
  const int saved_errno = errno;
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;  // standard error is closed or full: there is nobody to tell
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  errno = saved_errno;
}

void print(std::string_view kind, std::string_view message) noexcept {
  try {
    print_line(kind, message);
  } catch (const std::bad_alloc&) {
  }
}

// True the first time this text is seen. The memory is bounded: after this many distinct warnings
// one more helps nobody.
bool first_time(std::string_view message) noexcept try {
  static constexpr std::size_t most_remembered = 1024;
  // Never destroyed: a warning may come from another library's exit handler.
  static constinit std::mutex guard;
  static Immortal<std::set<std::string, std::less<>>> kept;
  auto& seen = *kept;
  const std::lock_guard lock(guard);
  if (seen.size() >= most_remembered || seen.contains(message)) return false;
  seen.emplace(message);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

void set_verbosity(Verbosity verbosity) { chosen.store(verbosity, std::memory_order_relaxed); }

void warn(std::string_view message) noexcept {
  if (shown(Verbosity::warnings) && first_time(message)) print("warning", message);
}

void info(std::string_view message) noexcept {
  if (shown(Verbosity::info)) print("info", message);
}

void debug(std::string_view message) noexcept {
  if (shown(Verbosity::debug)) print("debug", message);
}

}  // namespace plait
