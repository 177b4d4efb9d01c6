// A program's output, line by line, while it runs.
#pragma once

#include <cstdio>
#include <string>

#include "core/status.h"

namespace plait::tuner {

// A shell's command, which hears SIGTERM when this process ends, however it ends.
class ChildOutput {
 public:
  // Fails (unavailable) where nothing can be started.
  static Result<ChildOutput> of(const std::string& command);
  ChildOutput(ChildOutput&& other) noexcept;
  ChildOutput(const ChildOutput&) = delete;
  ~ChildOutput();

  // Both of its outputs.
  std::FILE* text() const { return text_; }
  // Blocks until it has ended; as waitpid() says it.
  int wait();

 private:
  ChildOutput(std::FILE* text, int process) : text_(text), process_(process) {}

  std::FILE* text_;
  int process_;
};

}  // namespace plait::tuner
