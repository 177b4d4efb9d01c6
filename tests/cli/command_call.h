// Calls a subcommand of `plait` in the test's own process, as main.cpp does.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "tuner/commands/command.h"

namespace plait::tuner {

struct Outcome {
  Status status;        // `invalid` for a wrong command line too; `internal` for an exit code that is not 0
  std::string printed;  // on standard output
};

Outcome call(std::unique_ptr<Command> command, std::vector<std::string> arguments);
// `line`: words with single spaces between them.
Outcome call_line(std::unique_ptr<Command> command, const std::string& line);

// A bad input: `invalid`, with one line that has the words, and nothing printed.
void expect_refused(const Outcome& outcome, const std::string& words);

// A folder of its own, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(std::string_view name) const { return folder_ / name; }
  // Writes the file; its path.
  std::string file(std::string_view name, std::string_view text) const;
  std::string content(std::string_view name) const;
  std::size_t files() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace plait::tuner
