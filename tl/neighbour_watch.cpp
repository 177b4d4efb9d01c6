#include "tl/neighbour_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace plait::tl {

// "time on the processor, time in line, turns", nanoseconds.
std::optional<std::uint64_t> time_in_line_ns() {
  std::array<char, 96> text{};
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const ssize_t length = ::read(file, text.data(), text.size());
  close(file);
  const std::string_view words(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::size_t blank = words.find(' ');
  if (blank == words.npos) return std::nullopt;
  std::uint64_t in_line = 0;
  const auto [end, error] = std::from_chars(words.data() + blank + 1, words.data() + words.size(), in_line);
  return error == std::errc() ? std::optional(in_line) : std::nullopt;
}

void NeighbourWatch::read(std::uint64_t now_ns) {
  const std::uint64_t took = now_ns - std::exchange(since_ns_, now_ns);
  const std::optional<std::uint64_t> now_in_line = reader_();
  if (!now_in_line) return;
  const std::uint64_t waited = *now_in_line - std::exchange(in_line_ns_, *now_in_line);
  const pthread_t before = std::exchange(thread_, pthread_self());
  if (!pthread_equal(before, thread_)) return;
  shared_ = waited >= took / (shared_ ? alone_below : shared_from);
}

}  // namespace plait::tl
