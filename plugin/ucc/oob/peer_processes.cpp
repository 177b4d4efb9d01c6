#include "plugin/ucc/oob/peer_processes.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "topo/discovery.h"

namespace plait::plugin {
namespace {

struct Whereabouts {
  HostId host;
  std::uint64_t numbers;  // which processes know each other by number
  std::int64_t process;
};

std::uint64_t process_numbers() {
  struct stat found {};
  return stat("/proc/self/ns/pid", &found) == 0 ? static_cast<std::uint64_t>(found.st_ino) : 0;
}

// Also of one that nobody has waited for yet. Where it cannot be told it has not.
bool has_ended(pid_t process) {
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0) return errno == ESRCH;
  pollfd end{.fd = descriptor, .events = POLLIN, .revents = 0};
  const bool ended = poll(&end, 1, 0) > 0;
  close(descriptor);
  return ended;
}

}  // namespace

Status PeerProcesses::meet(Oob& oob) {
  const Whereabouts mine{.host = discover_host(), .numbers = process_numbers(), .process = getpid()};
  std::vector<Whereabouts> all(static_cast<std::size_t>(oob.ranks()));
  peers_.reserve(all.size());
  if (Status met = oob.gather_all(&mine, sizeof mine, all.data(), "tell each other their processes"); !met.ok())
    return met;
  for (int rank = 0; rank < oob.ranks(); ++rank) {
    const Whereabouts& other = all[static_cast<std::size_t>(rank)];
    const bool seen = other.host == mine.host && other.numbers == mine.numbers && mine.numbers != 0;
    if (seen && other.process != mine.process) peers_.push_back({rank, static_cast<pid_t>(other.process)});
  }
  return {};
}

Status PeerProcesses::look() const {
  for (const Peer& peer : peers_)
    if (has_ended(peer.process))
      return {Code::peer_failed, "rank " + std::to_string(peer.rank) + "'s process has ended"};
  return {};
}

}  // namespace plait::plugin
