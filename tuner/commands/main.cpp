// The `plait` command.
#include <CLI/CLI.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tuner/commands/command.h"
#include "tuner/measure/session.h"

namespace {

using plait::Code;
using plait::tuner::Command;
using plait::tuner::CommandLine;

constexpr std::array registered = {
    plait::tuner::config_command,   plait::tuner::topo_command,    plait::tuner::bench_command,
    plait::tuner::synth_command,    plait::tuner::place_command,   plait::tuner::probe_command,
    plait::tuner::tune_command,     plait::tuner::explain_command, plait::tuner::overlap_command,
    plait::tuner::simulate_command, plait::tuner::reshard_command, plait::tuner::pipeline_command,
    plait::tuner::advise_command,   plait::tuner::motif_command,   plait::tuner::schedule_command,
    plait::tuner::trace_command};

enum Exit : int { success = 0, failure = 1, bad_input = 2 };

// Messages are one line each, whatever a file name or a library's text contains.
std::string one_line(std::string text) {
  for (char& character : text) {
    if (static_cast<unsigned char>(character) < ' ') character = ' ';
  }
  return text;
}

int complain(const std::string& who, const std::string& message, Exit code) {
  std::cerr << one_line(who + ": " + message) + '\n';
  return code;
}

// A wrong command line is the same on all ranks of a job: it is told once.
int refuse(const std::string& who, const std::string& message) {
  if (!plait::tuner::launched_by_mpirun()) return complain(who, message, bad_input);
  auto session = plait::tuner::MpiSession::start();
  if (!session.ok()) return complain(who, message, bad_input);
  session->say_once(one_line(who + ": " + message));
  return bad_input;
}

// What was asked for must have reached its file: a full disk is an error.
int flush_output(const std::string& who, int code) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0) return code;
  return complain(who, "cannot write to standard output", failure);
}

int run(Command& command) {
  const std::string who = "plait " + std::string(command.name());
  const auto result = command.run();
  if (result.ok()) return flush_output(who, *result);
  return complain(who, result.status().message(), result.status().code() == Code::invalid ? bad_input : failure);
}

// What the command line should have been, for messages.
std::string expected_subcommand(const std::vector<CLI::App*>& parsers, int argc, char** argv) {
  std::string text = "expected a subcommand (";
  for (const CLI::App* parser : parsers) text += (parser == parsers.front() ? "" : ", ") + parser->get_name();
  return text + ")" + (argc > 1 ? " but found '" + std::string(argv[1]) + "'" : "");
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Plait: finds, explains and measures plans for collective communication.", "plait");
  app.set_version_flag("--version", "plait " PLAIT_VERSION);
  app.require_subcommand(1);
  std::vector<std::unique_ptr<Command>> commands;
  std::vector<CLI::App*> parsers;
  for (const auto make : registered) {
    Command& command = *commands.emplace_back(make());
    parsers.push_back(app.add_subcommand(std::string(command.name()), std::string(command.summary())));
    command.add_options(CommandLine(*parsers.back()));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return flush_output("plait", app.exit(error));  // --help, --version
    const auto chosen = app.get_subcommands();
    const std::string who = chosen.empty() ? "plait" : "plait " + chosen.front()->get_name();
    const std::string what = chosen.empty() ? expected_subcommand(parsers, argc, argv) : error.what();
    return refuse(who, what + "; see " + who + " --help");
  }
  for (std::size_t index = 0; index < commands.size(); ++index) {
    if (parsers[index]->parsed()) return run(*commands[index]);
  }
  return bad_input;  // not reached: one subcommand is required
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    return complain("plait", error.what(), failure);
  }
}
