// plait synth: every matrix' programs, counted, and the cheapest with their predicted times. Output: docs/p2.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/choose/plan_file.h"
#include "plan/synthesis/reference.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/commands/grid_programs.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int longest_program = 2 * most_levels;
constexpr int most_shown = static_cast<int>(most_listed);

struct SynthOptions {
  GridOptions grid;
  std::string collective = "allreduce";
  std::string save;
  int max_size = 5;
  int top = 10;
  bool master = false;
};

struct MatrixPrograms {
  std::vector<int> cardinalities;  // of the reduction group's levels
  std::uint64_t with_master = 0;   // programs when Master forms count as instructions of their own, where asked for
  PricedPrograms programs;
};

struct SynthResult {
  std::vector<MatrixPrograms> matrices;  // as the grid's
  std::uint64_t total = 0;
  double elapsed_seconds = 0;
};

Result<Collective> parse_collective(const std::string& text) {
  std::string names;
  for (int index = 0; index < planned_collectives; ++index) {
    const auto collective = static_cast<Collective>(index);
    if (collective == Collective::barrier || collective == Collective::alltoall) continue;  // no data, no levels
    if (text == name(collective)) return collective;
    names += (names.empty() ? "" : ", ") + std::string(name(collective));
  }
  return {Code::invalid, "--collective \"" + text + "\": expected one of " + names};
}

Status check_range(const char* option, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return {Code::invalid, std::string(option) + ' ' + std::to_string(value) + ": expected " + std::to_string(least) +
                             " to " + std::to_string(most)};
}

// Which programs there are does not depend on the cardinalities, so that two ranks a level are enough to count them.
constexpr std::size_t most_master_levels = 3;
std::uint64_t count_with_master(std::size_t levels, int most_instructions) {
  const std::vector<int> smallest(levels, 2);
  const auto counts = count_reference(smallest, most_instructions, true);
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

// Groups that span the same levels of the system have the same programs at the same prices.
SynthResult synthesize(const PlacedGrid& grid, Collective collective, const ProgramLimits& limits, bool master) {
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::vector<std::pair<int, int>>, MatrixPrograms> known;
  SynthResult result;
  for (const ParallelismMatrix& matrix : grid.matrices) {
    std::vector<std::pair<int, int>> key;
    const GridGroup group = group_of(grid, matrix, grid.request.reduce, collective);
    for (const GroupLevel& level : group.levels) key.emplace_back(level.cardinality, level.system_level);
    const auto [entry, fresh] = known.try_emplace(key);
    if (fresh) {
      if (master) entry->second.with_master = count_with_master(group.levels.size(), limits.most_instructions);
      for (const GroupLevel& level : group.levels) entry->second.cardinalities.push_back(level.cardinality);
      entry->second.programs = priced_programs(grid, group, limits);
    }
    result.matrices.push_back(entry->second);
    result.total = saturating_sum(result.total, entry->second.programs.count);
  }
  result.elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

Json program_json(const PricedProgram& priced) {
  Json algorithms = Json::array();
  for (const Instruction& instruction : priced.program.instructions) algorithms.push_back(instruction.algorithm->name);
  return {{"text", text_without_algorithms(priced.program)},
          {"algorithms", std::move(algorithms)},
          {"chunks", priced.chunks},
          {"seconds", priced.seconds}};
}

Json to_json(const PlacedGrid& grid, Collective collective, const SynthResult& result) {
  Json json = grid_json(grid);
  json["collective"] = name(collective);
  json["matrices"] = Json::array();
  for (std::size_t index = 0; index < result.matrices.size(); ++index) {
    const MatrixPrograms& found = result.matrices[index];
    Json programs = Json::array();
    for (const PricedProgram& priced : found.programs.cheapest) programs.push_back(program_json(priced));
    Json matrix = {{"matrix", grid.matrices[index].rows},
                   {"hierarchy", found.cardinalities},
                   {"count", found.programs.count},
                   {"programs", std::move(programs)}};
    if (found.with_master > 0) matrix["count_with_master"] = found.with_master;
    json["matrices"].push_back(std::move(matrix));
  }
  json["total"] = result.total;
  json["elapsed_seconds"] = result.elapsed_seconds;
  return json;
}

void print_matrix(const ParallelismMatrix& matrix, const MatrixPrograms& found) {
  std::cout << "\nmatrix " << text(matrix);
  if (found.cardinalities.empty()) {
    std::cout << ", groups of one rank: 0 programs, nothing to do\n";
    return;
  }
  std::cout << ", groups " << text(found.cardinalities) << ": " << plural(found.programs.count, "program");
  if (found.with_master > 0) std::cout << ", " << grouped(found.with_master) << " with Master forms";
  std::cout << '\n';
  std::size_t width = 0;
  for (const auto& priced : found.programs.cheapest) {
    width = std::max(width, text_without_algorithms(priced.program).size());
  }
  for (const PricedProgram& priced : found.programs.cheapest) {
    std::string plain = text_without_algorithms(priced.program);
    plain.resize(width, ' ');
    std::cout << padded(format_seconds(priced.seconds), 10) << "  " << plain << "  " << text(priced.program) << " x"
              << priced.chunks << '\n';
  }
}

void print_text(const PlacedGrid& grid, Collective collective, const SynthResult& result) {
  std::cout << "system " << text(grid.request.system) << ", axes " << text(grid.request.axes) << ", "
            << name(collective) << " over " << (grid.request.reduce.size() == 1 ? "axis " : "axes ")
            << text(grid.request.reduce) << ", " << format_bytes(static_cast<std::size_t>(grid.bytes)) << ", machine "
            << grid.machine.name << '\n';
  for (std::size_t index = 0; index < result.matrices.size(); ++index) {
    print_matrix(grid.matrices[index], result.matrices[index]);
  }
  std::cout << "\ntotal " << plural(result.total, "program") << " of " << grouped(result.matrices.size())
            << (result.matrices.size() == 1 ? " matrix, " : " matrices, ") << format_seconds(result.elapsed_seconds)
            << '\n';
}

// The plan file that PLAIT_PLAN reads (docs/p2.md).
Status save_plan(const std::string& path, Collective collective, const MatrixPrograms& found) {
  if (found.programs.cheapest.empty()) {
    return {Code::invalid, "--save: the first matrix has no program to save (groups of one rank, or --top 0)"};
  }
  const PricedProgram& best = found.programs.cheapest.front();
  const Status written =
      replace_file(path, plan_file_json({collective, found.cardinalities, best.program, best.chunks}));
  return written.ok() ? written : Status(written.code(), "--save " + written.message());
}

class SynthCommand : public Command {
 public:
  std::string_view name() const override { return "synth"; }
  std::string_view summary() const override {
    return "list the programs of a reduction over axes of a grid, with predicted times";
  }

  void add_options(CommandLine line) override {
    add_grid_options(line, options_.grid);
    line.option("--reduce", options_.grid.reduce, "the axes to reduce over, such as 0 or 0,2").required();
    line.option("--max-size", options_.max_size, "instructions a program may have").shows_default();
    line.option("--top", options_.top, "programs to show of each matrix").shows_default();
    line.option("--collective", options_.collective, "over the reduction axes").shows_default();
    line.flag("--master", options_.master, "count the programs with the paper's Master forms, too (up to 3 levels)");
    line.option("--save", options_.save, "write the first matrix' best program as a plan file");
  }

  Result<int> run() override {
    const auto collective = parse_collective(options_.collective);
    if (!collective.ok()) return collective.status();
    const Status size = check_range("--max-size", options_.max_size, 1, longest_program);
    if (!size.ok()) return size;
    const Status top = check_range("--top", options_.top, 0, most_shown);
    if (!top.ok()) return top;
    const auto grid = understand_grid(options_.grid);
    if (!grid.ok()) return grid.status();
    if (const Status master = check_master(*grid, *collective); !master.ok()) return master;
    const ProgramLimits limits{.most_instructions = options_.max_size, .top = static_cast<std::size_t>(options_.top)};
    const SynthResult result = synthesize(*grid, *collective, limits, options_.master);
    if (!options_.save.empty()) {
      const Status saved = save_plan(options_.save, *collective, result.matrices.front());
      if (!saved.ok()) return saved;
    }
    if (options_.grid.json) {
      std::cout << to_json(*grid, *collective, result).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    } else {
      print_text(*grid, *collective, result);
    }
    return 0;
  }

 private:
  Status check_master(const PlacedGrid& grid, Collective collective) const {
    if (!options_.master) return {};
    if (collective != Collective::allreduce) return {Code::invalid, "--master: counts programs of allreduce only"};
    for (const ParallelismMatrix& matrix : grid.matrices)
      if (const std::size_t levels = group_levels(matrix, grid.request.reduce).size(); levels > most_master_levels)
        return {Code::invalid, "--master: " + std::to_string(levels) + " levels in a group; expected at most " +
                                   std::to_string(most_master_levels)};
    return {};
  }

  SynthOptions options_;
};

}  // namespace

std::unique_ptr<Command> synth_command() { return std::make_unique<SynthCommand>(); }

}  // namespace plait::tuner
