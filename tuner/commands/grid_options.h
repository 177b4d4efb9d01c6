// What `plait synth` and `plait place` have in common on their command lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/machine.h"
#include "plan/synthesis/placement.h"
#include "topo/hierarchy.h"
#include "tuner/commands/command_line.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// As the user wrote them.
struct GridOptions {
  std::string system, axes, reduce;
  std::string bytes = "1G";
  std::string machine = "default";
  std::string algorithms = "all";
  bool json = false;
};
void add_grid_options(CommandLine line, GridOptions& options);

// Which algorithms may carry out instructions: any, or those that NCCL_ALGO=Ring and =Tree leave.
enum class AlgorithmChoice { all, ring, tree };

// As they are understood.
struct PlacedGrid {
  GridRequest request;
  std::vector<ParallelismMatrix> matrices;
  double bytes = 0;
  Machine machine;
  AlgorithmChoice algorithms = AlgorithmChoice::all;
};
// Fails (invalid) with the option and what was expected.
Result<PlacedGrid> understand_grid(const GridOptions& options);

// "4,16" -> {4, 16}. `option` names it in messages.
Result<std::vector<int>> parse_numbers(std::string_view option, std::string_view text);
// --system "4,2", of 2 to `most` ranks.
Result<Hierarchy> parse_system(std::string_view text, int most);
// --segments "2,4,8": into how many a payload may be cut.
Result<std::vector<int>> parse_segments(std::string_view text);
// A built-in machine's name, or a machine file. Fails (invalid) with the reason.
Result<Machine> load_machine(const std::string& name_or_file);

// How many matrices there are, counted no further than `most` + 1: eight axes of eight have billions of them.
// Precondition: check() is ok.
std::size_t matrix_count(const GridRequest& request, std::size_t most);

// system, axes, reduce, bytes, machine.
nlohmann::ordered_json grid_json(const PlacedGrid& grid);

}  // namespace plait::tuner
