// Links of an emulated cluster that take their time: what `scripts/cluster up --delay` runs (docs/cluster.md).
//
//   delay_line NANOSECONDS HOME NAMESPACE:INTERFACE NAMESPACE:INTERFACE ...
//
// Makes the named TAP interfaces, each two a link: a frame that leaves one of them arrives at the other one that much
// later, in order. Prints its process number when they are there, and stays in the network namespace HOME until it is
// killed; the interfaces go with it. Large segments pass whole, as between virtual Ethernet interfaces.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t most_frame_bytes = 128 * 1024;  // a segment of 64 KiB, its headers
constexpr std::size_t most_queued_bytes = std::size_t{64}
                                          << 20;  // of a direction; what is beyond is lost, as in a switch
constexpr int most_at_once = 64;                  // frames of a direction, before the others get a turn
constexpr std::uint64_t long_ns = 1'000'000'000;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "delay_line: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void enter(const std::string& network_namespace) {
  const std::string path = "/run/netns/" + network_namespace;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) fail(path);
  close(file);
}

// It vanishes when this process ends.
int make_interface(std::string_view place) {
  const std::size_t colon = place.find(':');
  if (colon == std::string_view::npos || place.size() - colon > IFNAMSIZ) {
    errno = EINVAL;
    fail(std::string(place));
  }
  enter(std::string(place.substr(0, colon)));
  const int file = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::ranges::copy(place.substr(colon + 1), request.ifr_name);
  const unsigned long offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
  if (file < 0 || ioctl(file, TUNSETIFF, &request) != 0 || ioctl(file, TUNSETOFFLOAD, offloads) != 0)
    fail(std::string(place));
  return file;
}

struct Frame {
  std::uint64_t due_ns = 0;
  std::vector<std::byte> bytes;
};

// One direction of a link.
class Direction {
 public:
  Direction(int from, int to, std::uint64_t delay_ns) : from_(from), to_(to), delay_ns_(delay_ns) {}

  int from() const { return from_; }
  std::uint64_t due_ns() const { return queue_.empty() ? ~std::uint64_t{0} : queue_.front().due_ns; }

  // Ends the process where the interface is gone: the cluster says so then.
  void take(std::byte* room) {
    for (int frames = 0; frames < most_at_once; ++frames) {
      const ssize_t bytes = read(from_, room, most_frame_bytes);
      if (bytes < 0 && errno != EAGAIN && errno != EINTR) fail("an interface");
      if (bytes <= 0) return;
      const auto length = static_cast<std::size_t>(bytes);
      if (queued_bytes_ + length > most_queued_bytes) continue;
      Frame frame = recycled();
      frame.due_ns = now_ns() + delay_ns_;
      frame.bytes.assign(room, room + length);
      queued_bytes_ += length;
      queue_.push_back(std::move(frame));
    }
  }

  // What the other interface does not take (it is down) is lost.
  void give() {
    for (const std::uint64_t now = now_ns(); due_ns() <= now;) {
      Frame frame = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= frame.bytes.size();
      [[maybe_unused]] const ssize_t written = write(to_, frame.bytes.data(), frame.bytes.size());
      free_.push_back(std::move(frame));
    }
  }

 private:
  // As many as were under way at once.
  Frame recycled() {
    if (free_.empty()) return {};
    Frame frame = std::move(free_.back());
    free_.pop_back();
    return frame;
  }

  int from_, to_;
  std::uint64_t delay_ns_;
  std::deque<Frame> queue_;
  std::vector<Frame> free_;
  std::size_t queued_bytes_ = 0;
};

[[noreturn]] void run(std::vector<Direction> directions) {
  const auto room = std::make_unique<std::byte[]>(most_frame_bytes);
  std::vector<pollfd> files;
  for (const Direction& direction : directions) files.push_back({direction.from(), POLLIN, 0});
  for (;;) {
    std::uint64_t due_ns = ~std::uint64_t{0};
    for (Direction& direction : directions) {
      direction.give();
      due_ns = std::min(due_ns, direction.due_ns());
    }
    const std::uint64_t now = now_ns(), wait_ns = due_ns <= now ? 0 : std::min(due_ns - now, long_ns);
    const timespec wait{static_cast<time_t>(wait_ns / long_ns), static_cast<long>(wait_ns % long_ns)};
    if (ppoll(files.data(), files.size(), &wait, nullptr) < 0 && errno != EINTR) fail("ppoll");
    for (std::size_t i = 0; i < files.size(); ++i)
      if (files[i].revents != 0) directions[i].take(room.get());
  }
}

int usage() {
  std::fputs("usage: delay_line NANOSECONDS HOME NAMESPACE:INTERFACE NAMESPACE:INTERFACE ...\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.size() < 4 || words.size() % 2 != 0) return usage();
  std::uint64_t delay_ns = 0;
  const auto [end, error] = std::from_chars(words[0].begin(), words[0].end(), delay_ns);
  if (error != std::errc() || end != words[0].end()) return usage();
  std::vector<Direction> directions;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const int one = make_interface(words[i]), other = make_interface(words[i + 1]);
    directions.emplace_back(one, other, delay_ns);
    directions.emplace_back(other, one, delay_ns);
  }
  enter(std::string(words[1]));
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::printf("%d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);  // who waits for the end of the output need not wait on
  if (nothing < 0 || dup2(nothing, STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0) fail("/dev/null");
  run(std::move(directions));
}
