#include "tests/cli/command_call.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "tuner/text/words.h"

namespace plait::tuner {
namespace fs = std::filesystem;

Outcome call(std::unique_ptr<Command> command, std::vector<std::string> arguments) {
  CLI::App app;
  command->add_options(CommandLine(app));
  std::reverse(arguments.begin(), arguments.end());
  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  Status status;
  try {
    app.parse(arguments);
    const Result<int> result = command->run();
    status =
        result.ok() && *result != 0 ? Status(Code::internal, "exit code " + std::to_string(*result)) : result.status();
  } catch (const CLI::ParseError& error) {
    status = Status(Code::invalid, error.what());
  }
  std::cout.rdbuf(before);
  return {status, printed.str()};
}

Outcome call_line(std::unique_ptr<Command> command, const std::string& line) {
  return call(std::move(command), split(line, ' '));
}

void expect_refused(const Outcome& outcome, const std::string& words) {
  EXPECT_EQ(outcome.status.code(), Code::invalid) << outcome.status.message();
  EXPECT_NE(outcome.status.message().find(words), std::string::npos)
      << "says: " << outcome.status.message() << "\nnot:  " << words;
  EXPECT_EQ(outcome.status.message().find('\n'), std::string::npos) << outcome.status.message();
  EXPECT_EQ(outcome.printed, "");
}

TemporaryFolder::TemporaryFolder() {
  std::string made = (fs::temp_directory_path() / "plait_cli.XXXXXX").string();
  if (mkdtemp(made.data()) == nullptr) ADD_FAILURE() << "no temporary folder " << made;
  folder_ = made;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string TemporaryFolder::file(std::string_view name, std::string_view text) const {
  std::ofstream(folder_ / name) << text;
  return path(name);
}

std::string TemporaryFolder::content(std::string_view name) const {
  std::ostringstream text;
  text << std::ifstream(folder_ / name).rdbuf();
  return text.str();
}

std::size_t TemporaryFolder::files() const {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
}

}  // namespace plait::tuner
