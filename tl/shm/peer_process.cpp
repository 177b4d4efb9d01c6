#include "tl/shm/peer_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

namespace plait::tl::detail {
namespace {

// One that has ended stays in the table of processes until its parent has asked what became of it.
bool has_ended(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may have any characters
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X');
}

}  // namespace

// Before Linux 5.3, and where a sandbox forbids it, there are no descriptors of processes.
bool process_gone(int process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return true;
  const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0) return errno == ESRCH || has_ended(process);
  pollfd end{.fd = descriptor, .events = POLLIN, .revents = 0};
  const bool ended = poll(&end, 1, 0) == 1;
  close(descriptor);
  return ended;
}

}  // namespace plait::tl::detail
