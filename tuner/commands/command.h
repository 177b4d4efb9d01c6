// A subcommand of `plait`. Adding one is one file and one line in main.cpp.
#pragma once

#include <memory>
#include <string_view>

#include "core/status.h"
#include "tuner/commands/command_line.h"

namespace plait::tuner {

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string_view name() const = 0;       // "topo"
  virtual std::string_view summary() const = 0;    // one line for --help
  virtual void add_options(CommandLine line) = 0;  // bound to members, which run() then reads
  // The exit code. A Status is printed as one line, "plait topo: ...", and exits 2 where its code is `invalid` (bad
  // input), else 1. Under a launcher every rank calls it; only rank 0 may print.
  virtual Result<int> run() = 0;
};

std::unique_ptr<Command> advise_command();
std::unique_ptr<Command> bench_command();
std::unique_ptr<Command> config_command();
std::unique_ptr<Command> explain_command();
std::unique_ptr<Command> motif_command();
std::unique_ptr<Command> overlap_command();
std::unique_ptr<Command> pipeline_command();
std::unique_ptr<Command> place_command();
std::unique_ptr<Command> probe_command();
std::unique_ptr<Command> reshard_command();
std::unique_ptr<Command> schedule_command();
std::unique_ptr<Command> simulate_command();
std::unique_ptr<Command> synth_command();
std::unique_ptr<Command> topo_command();
std::unique_ptr<Command> trace_command();
std::unique_ptr<Command> tune_command();

}  // namespace plait::tuner
