#include "tuner/commands/child_output.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace plait::tuner {
namespace {

[[noreturn]] void become(const std::string& command, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it has ended before it could be asked for
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

}  // namespace

Result<ChildOutput> ChildOutput::of(const std::string& command) {
  const auto failed = [] { return Status(Code::unavailable, std::strerror(errno)); };
  const std::string replaced = "exec " + command;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed();
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become(replaced, ends[1], parent);
  close(ends[1]);
  std::FILE* text = child < 0 ? nullptr : fdopen(ends[0], "r");
  if (text == nullptr) {
    close(ends[0]);
    return failed();
  }
  return ChildOutput(text, child);
}

ChildOutput::ChildOutput(ChildOutput&& other) noexcept
    : text_(std::exchange(other.text_, nullptr)), process_(std::exchange(other.process_, -1)) {}

ChildOutput::~ChildOutput() {
  if (process_ > 0) kill(process_, SIGTERM);
  wait();
}

int ChildOutput::wait() {
  if (text_ != nullptr) std::fclose(std::exchange(text_, nullptr));
  int status = 0;
  if (process_ > 0)
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
  return status;
}

}  // namespace plait::tuner
