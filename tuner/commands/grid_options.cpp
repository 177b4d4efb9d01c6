#include "tuner/commands/grid_options.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "core/file.h"
#include "core/units.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

constexpr std::size_t most_matrices = 100'000;
constexpr std::size_t longest_machine_file = 1 << 20;

Result<AlgorithmChoice> parse_choice(const std::string& text) {
  if (text == "all") return AlgorithmChoice::all;
  if (text == "ring") return AlgorithmChoice::ring;
  if (text == "tree") return AlgorithmChoice::tree;
  return {Code::invalid, "--algorithms \"" + text + "\": expected all, ring or tree"};
}

Result<GridRequest> parse_request(const GridOptions& options) {
  GridRequest request;
  const auto fill = [](std::vector<int>& numbers, std::string_view option, const std::string& text) {
    auto parsed = parse_numbers(option, text);
    if (parsed.ok()) numbers = std::move(*parsed);
    return parsed.status();
  };
  if (Status status = fill(request.system, "--system", options.system); !status.ok()) return status;
  if (Status status = fill(request.axes, "--axes", options.axes); !status.ok()) return status;
  if (Status status = fill(request.reduce, "--reduce", options.reduce); !status.ok()) return status;
  if (Status status = check(request); !status.ok()) return status;
  return request;
}

// Counts the ways to fill a matrix column by column. Every partial filling can be completed (columns and rows have the
// same product), so that the work is bounded by what is counted.
class MatrixCounter {
 public:
  MatrixCounter(const GridRequest& request, std::size_t most)
      : system_(request.system), axes_(request.axes), most_(most) {}

  std::size_t count() {
    column(0);
    return std::min(found_, most_ + 1);
  }

 private:
  void column(std::size_t level) {
    if (found_ > most_) return;
    if (level + 1 >= system_.size())
      ++found_;  // the last column takes what is left
    else
      entry(level, 0, system_[level]);
  }
  void entry(std::size_t level, std::size_t axis, int left) {
    if (axis == axes_.size()) return column(level + 1);
    const int whole = axes_[axis];
    for (const int factor : divisors(std::gcd(left, whole))) {
      if (found_ > most_) break;
      if (!rest_holds(axis + 1, left / factor)) continue;
      axes_[axis] = whole / factor;
      entry(level, axis + 1, left / factor);
    }
    axes_[axis] = whole;
  }
  bool rest_holds(std::size_t axis, int factor) const {
    std::int64_t product = 1;  // of less than 2^31, as the number of ranks
    for (; axis < axes_.size(); ++axis) product *= axes_[axis];
    return product % factor == 0;
  }

  const std::vector<int>& divisors(int number) {
    const auto [entry, fresh] = divisors_.try_emplace(number);
    for (std::int64_t low = 1; fresh && low * low <= number; ++low) {
      if (number % low != 0) continue;
      entry->second.push_back(static_cast<int>(low));
      if (low * low != number) entry->second.push_back(static_cast<int>(number / low));
    }
    return entry->second;
  }

  std::map<int, std::vector<int>> divisors_;  // of the numbers met so far; references stay valid
  std::vector<int> system_, axes_;            // axes_: what the columns so far leave of each
  std::size_t most_;
  std::size_t found_ = 0;
};

}  // namespace

void add_grid_options(CommandLine line, GridOptions& options) {
  line.option("--system", options.system, "the system's cardinalities, outermost first, such as 4,16").required();
  line.option("--axes", options.axes, "sizes of the parallelism axes, such as 4,16").required();
  line.option("--bytes", options.bytes, "of the whole vector, such as 64K or 1G").shows_default();
  line.option("--machine", options.machine, "default, a100, v100, or a machine file (docs/p2.md)").shows_default();
  line.option("--algorithms", options.algorithms, "all, or what NCCL_ALGO leaves: ring, tree").shows_default();
  line.flag("--json", options.json, "print JSON");
}

Result<PlacedGrid> understand_grid(const GridOptions& options) {
  PlacedGrid grid;
  auto request = parse_request(options);
  if (!request.ok()) return request.status();
  grid.request = std::move(*request);
  const auto bytes = parse_bytes(options.bytes);
  if (!bytes.ok()) return {Code::invalid, "--bytes: " + bytes.status().message()};
  if (*bytes == 0) return {Code::invalid, "--bytes: \"" + options.bytes + "\": expected at least one byte"};
  grid.bytes = static_cast<double>(*bytes);
  const auto algorithms = parse_choice(options.algorithms);
  if (!algorithms.ok()) return algorithms.status();
  grid.algorithms = *algorithms;
  auto machine = load_machine(options.machine);
  if (!machine.ok()) return machine.status();
  grid.machine = std::move(*machine);
  if (matrix_count(grid.request, most_matrices) > most_matrices) {
    return {Code::invalid, "--axes " + options.axes + ": more than " + grouped(most_matrices) +
                               " matrices on --system " + options.system + "; expected fewer or smaller axes"};
  }
  grid.matrices = parallelism_matrices(grid.request.system, grid.request.axes);
  return grid;
}

Result<std::vector<int>> parse_numbers(std::string_view option, std::string_view text) {
  std::vector<int> numbers;
  for (const std::string& word : split(text, ',')) {
    int number = 0;
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, number);
    if (error != std::errc() || rest != end) {
      return {Code::invalid, std::string(option) + " \"" + std::string(text) + "\": \"" + word +
                                 "\": expected whole numbers with commas between them, such as 4,16"};
    }
    numbers.push_back(number);
  }
  return numbers;
}

Result<Hierarchy> parse_system(std::string_view text, int most) {
  const Result<std::vector<int>> numbers = parse_numbers("--system", text);
  if (!numbers.ok()) return numbers.status();
  std::int64_t ranks = 1;
  for (const int number : *numbers) ranks = std::min<std::int64_t>(ranks * std::max(number, 0), std::int64_t{most} + 1);
  if (ranks < 2 || ranks > most)
    return {Code::invalid,
            "--system \"" + std::string(text) + "\": expected 2 to " + std::to_string(most) + " ranks, such as 4,2"};
  return Hierarchy::uniform_of(*numbers);
}

Result<std::vector<int>> parse_segments(std::string_view text) {
  constexpr int most_segments = 256;
  constexpr std::size_t most_numbers = 8;
  Result<std::vector<int>> numbers = parse_numbers("--segments", text);
  if (!numbers.ok()) return numbers;
  for (const int number : *numbers)
    if (number < 2 || number > most_segments || numbers->size() > most_numbers)
      return {Code::invalid, "--segments \"" + std::string(text) + "\": expected up to " +
                                 std::to_string(most_numbers) + " numbers from 2 to " + std::to_string(most_segments)};
  return numbers;
}

Result<Machine> load_machine(const std::string& name_or_file) {
  auto named = machine_named(name_or_file);
  if (named.ok()) return named;
  const auto text = read_file(name_or_file, longest_machine_file);
  if (!text.ok()) {
    const bool looks_like_file = name_or_file.find_first_of("/.") != std::string::npos;
    return looks_like_file ? Status(Code::invalid, "--machine " + text.status().message())
                           : Status(Code::invalid, named.status().message() + ", or a machine file");
  }
  auto machine = parse_machine(*text);
  if (!machine.ok()) return {Code::invalid, "--machine \"" + name_or_file + "\": " + machine.status().message()};
  return machine;
}

std::size_t matrix_count(const GridRequest& request, std::size_t most) { return MatrixCounter(request, most).count(); }

nlohmann::ordered_json grid_json(const PlacedGrid& grid) {
  return {{"system", grid.request.system},
          {"axes", grid.request.axes},
          {"reduce", grid.request.reduce},
          {"bytes", static_cast<std::uint64_t>(grid.bytes)},
          {"machine", grid.machine.name}};
}

}  // namespace plait::tuner
