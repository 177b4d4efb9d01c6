#include "tuner/commands/simulate_collective.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "tuner/commands/child_output.h"
#include "tuner/picture/scale_picture.h"
#include "tuner/text/platform.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t largest_file = std::size_t{1} << 20;
constexpr int most_collective_ranks = 65536;
constexpr std::string_view trees = "binomial";
constexpr std::array<std::string_view, 5> known_selectors = {"ompi", "mpich", "mvapich2", "impi", trees};
// Trees as the simplest MPI has them: what the traffic of others is compared with.
constexpr std::string_view binomial_trees =
    " --cfg=smpi/bcast:binomial_tree --cfg=smpi/reduce:binomial --cfg=smpi/allreduce:redbcast --cfg=smpi/allgather:GB";
constexpr std::array known_platforms = {"fat-tree", "dragonfly", "torus"};

// 0: not simulated.
struct Simulated {
  double seconds = 0, global_bytes = 0;
};

// Of one collective and size.
struct SimulatedRow {
  Collective collective = Collective::barrier;
  std::size_t bytes = 0;
  std::map<std::string, Simulated> host;  // by selector
  Simulated plait;
  std::string plan, problem;

  double least_of_hosts(double Simulated::*figure) const {
    double least = 0;
    for (const auto& [selector, found] : host) least = least == 0 ? found.*figure : std::min(least, found.*figure);
    return least;
  }
};

// What the command says while smpirun works.
void note(const std::string& what) {
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\033[Ksimulating " << what << std::flush;
}
void end_notes() {
  if (isatty(STDERR_FILENO) != 0) std::cerr << "\r\033[K" << std::flush;
}

// ---- What is asked for ----

struct Asked {
  Platform platform;
  std::string platform_file;
  PlatformJob job;
  std::vector<std::string> selectors;
};

std::string folder_of_command() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string whole(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return whole.substr(0, whole.rfind('/'));
}

bool is_there(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// Beside the command in the build folder, in share/ where it is installed.
Result<std::string> platform_file(const std::string& named) {
  if (std::ranges::find(known_platforms, named) == known_platforms.end()) return named;
  for (const char* place : {"/platforms/", "/../share/plait/platforms/"})
    if (const std::string path = folder_of_command() + place + named + ".xml"; is_there(path)) return path;
  return Status(Code::invalid, "--platform " + named + ": its file is not beside the command");
}

Result<Asked> read(const CollectiveSimulationOptions& options) {
  Asked asked;
  const Result<std::string> path = platform_file(options.platform);
  if (!path.ok()) return path.status();
  asked.platform_file = *path;
  const Result<std::string> text = read_file(asked.platform_file, largest_file);
  if (!text.ok())
    return Status(Code::invalid,
                  "--platform: expected fat-tree, dragonfly, torus or a file: " + text.status().message());
  Result<Platform> platform = read_platform(*text);
  if (!platform.ok()) return Status(Code::invalid, asked.platform_file + ": " + platform.status().message());
  asked.platform = std::move(*platform);
  asked.job = {options.nodes, options.ranks_per_node};
  if (options.nodes < 1 || options.nodes > asked.platform.nodes)
    return Status(Code::invalid, "--nodes " + std::to_string(options.nodes) + ": " + asked.platform.id + " has " +
                                     std::to_string(asked.platform.nodes));
  if (options.ranks_per_node < 1 || asked.job.ranks() < 2 || options.ranks_per_node > most_collective_ranks ||
      asked.job.ranks() > most_collective_ranks)
    return Status(Code::invalid, "--nodes, --ppn: expected 2 to 65536 ranks");
  for (const std::string& selector : split(options.alone ? std::string(trees) : options.selectors, ',')) {
    if (std::ranges::find(known_selectors, selector) == known_selectors.end())
      return Status(Code::invalid,
                    "--selectors: '" + selector + "': expected some of ompi, mpich, mvapich2, impi, binomial");
    asked.selectors.push_back(selector);
  }
  for (const std::string& size : split(options.sizes, ','))
    if (const auto bytes = parse_bytes(size); !bytes.ok())
      return Status(Code::invalid, "--sizes: " + bytes.status().message());
  constexpr std::array simulated = {Collective::allreduce,
                                    Collective::bcast,
                                    Collective::reduce,
                                    Collective::allgather,
                                    Collective::reduce_scatter_block,
                                    Collective::alltoall};
  for (const std::string& name : split(options.collectives, ',')) {
    const std::optional<Collective> collective = collective_named(name);
    if (!collective || std::ranges::find(simulated, *collective) == simulated.end())
      return Status(Code::invalid, "--collectives: '" + name +
                                       "': expected some of allreduce, bcast, reduce, allgather, reduce_scatter_block, "
                                       "alltoall");
  }
  return asked;
}

// ---- Running SimGrid ----

// A folder for its files, which goes with it.
class WorkFolder {
 public:
  WorkFolder() {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~WorkFolder() {
    for (const std::string& name : names_) unlink((path_ + "/" + name).c_str());
    if (!path_.empty()) rmdir(path_.c_str());
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  Result<std::string> write(const std::string& name, const std::string& text) {
    if (path_.empty()) return Status(Code::unavailable, std::string("no temporary folder: ") + std::strerror(errno));
    names_.push_back(name);
    const std::string path = path_ + "/" + name;
    if (const Status written = replace_file(path, text); !written.ok()) return written;
    return path;
  }

 private:
  std::string path_ = "/tmp/plait-simulate-XXXXXX";
  std::vector<std::string> names_;
};

std::string quoted(const std::string& word) {
  std::string made = "'";
  for (const char character : word) made += character == '\'' ? std::string("'\\''") : std::string(1, character);
  return made + "'";
}

// The lines that the job's rank 0 prints; what else it says goes to stderr, and is told where the job fails.
Result<std::vector<Json>> run_job(const std::string& command, const std::string& who) {
  Result<ChildOutput> job = ChildOutput::of(command);
  if (!job.ok()) return Status(Code::unavailable, "smpirun: " + job.status().message());
  std::FILE* output = job->text();
  std::vector<Json> lines;
  std::string line, said;
  for (int character = std::fgetc(output); character != EOF; character = std::fgetc(output)) {
    if (character != '\n') {
      line += static_cast<char>(character);
      continue;
    }
    Json read = line.starts_with('{') ? Json::parse(line, nullptr, false) : Json();
    if (read.is_object()) {
      lines.push_back(std::move(read));
      note(who + ": " + std::to_string(lines.size()) + " rows");
    } else if (said.empty() && !line.empty()) {
      said = line;
    }
    line.clear();
  }
  const int status = job->wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return lines;
  return Status(Code::unavailable, "smpirun fails: " + (said.empty() ? std::string("it says nothing") : said));
}

class Simulation {
 public:
  Simulation(const Asked& asked, const CollectiveSimulationOptions& options) : asked_(asked), options_(options) {}

  Status prepare() {
    std::string hosts;
    for (int node = 0; node < asked_.job.nodes; ++node)
      for (int rank = 0; rank < asked_.job.ranks_per_node; ++rank) hosts += asked_.platform.node_name(node) + "\n";
    const Result<std::string> host_file = files_.write("hosts", hosts);
    if (!host_file.ok()) return host_file.status();
    host_file_ = *host_file;
    const Result<std::string> machine = files_.write("machine.json", machine_json(machine_of(asked_.platform)));
    if (!machine.ok()) return machine.status();
    machine_file_ = *machine;
    program_ = folder_of_command() + "/plait-simgrid";
    if (!is_there(program_))
      return {Code::unavailable, program_ + " is not there: it is built where SimGrid is installed (libsimgrid-dev)"};
    return {};
  }

  // By one MPI's algorithms, or by Plait's plans.
  Result<std::vector<Json>> run(const std::string& selector, bool plait) const {
    const bool by_flows = options_.alone;  // one actor for all ranks
    std::string command = "smpirun -np " + std::to_string(by_flows ? 1 : asked_.job.ranks());
    command += " -platform " + quoted(asked_.platform_file) + " -hostfile " + quoted(host_file_);
    command += selector == trees ? std::string(binomial_trees) : " --cfg=smpi/coll-selector:" + selector;
    // All ranks share what rank 0 plans; time is the network's alone, at the rates that the platform's file has.
    command +=
        " --cfg=smpi/privatization:no --cfg=smpi/simulate-computation:no --cfg=smpi/bw-factor:0:1"
        " --cfg=smpi/lat-factor:0:1 --cfg=smpi/async-small-thresh:65536 --log=root.thres:critical ";
    if (!by_flows) command += "--cfg=plugin:link_load ";
    command +=
        quoted(program_) + " --collectives " + quoted(options_.collectives) + " --sizes " + quoted(options_.sizes);
    command += " --machine " + quoted(machine_file_) + " --ranks-per-node " + std::to_string(asked_.job.ranks_per_node);
    command += " --nodes-per-switch " + std::to_string(asked_.platform.group) + " --only " + (plait ? "plait" : "host");
    command += " --topology " + std::string(name(asked_.platform.topology));
    command += " --nodes " + std::to_string(asked_.platform.nodes);
    if (by_flows) command += " --flow-hosts " + quoted(host_file_);
    return run_job(command, plait ? "Plait" : selector);
  }

 private:
  const Asked& asked_;
  const CollectiveSimulationOptions& options_;
  WorkFolder files_;
  std::string host_file_, machine_file_, program_;
};

// Rows come in the same order from every run.
Status take_host(const std::vector<Json>& lines, const std::string& selector, std::vector<SimulatedRow>& rows) {
  if (lines.size() != rows.size()) return {Code::unavailable, "smpirun ended before its time"};
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].host[selector] = {lines[i].value("host", 0.0), lines[i].value("host_global_bytes", 0.0)};
  return {};
}

Result<std::vector<SimulatedRow>> simulate(const Asked& asked, const CollectiveSimulationOptions& options) {
  Simulation simulation(asked, options);
  if (Status status = simulation.prepare(); !status.ok()) return status;
  // Only what ranks tell each other around a measurement is by this MPI's algorithms.
  const auto lines = simulation.run(asked.selectors.front(), true);
  if (!lines.ok()) return lines.status();
  std::vector<SimulatedRow> rows;
  for (const Json& line : *lines) {
    SimulatedRow row;
    row.collective = collective_named(line.value("collective", "")).value_or(Collective::barrier);
    row.bytes = line.value("bytes", std::size_t{0});
    row.plait = {line.value("plait", 0.0), line.value("global_bytes", 0.0)};
    row.plan = line.value("plan", "");
    row.problem = line.value("problem", "");
    rows.push_back(std::move(row));
  }
  if (options.alone) {  // the same job has played them
    if (Status status = take_host(*lines, std::string(trees), rows); !status.ok()) return status;
    return rows;
  }
  for (const std::string& selector : asked.selectors) {
    const auto host = simulation.run(selector, false);
    if (!host.ok()) return host.status();
    if (Status status = take_host(*host, selector, rows); !status.ok()) return status;
  }
  return rows;
}

// ---- What is printed ----

std::string microseconds(double seconds) {
  if (seconds <= 0) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", seconds < 1e-4 ? 2 : seconds < 1e-3 ? 1 : 0, seconds * 1e6);
  return text.data();
}

std::string number(double value, const char* form) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

void print(const Asked& asked, const std::vector<SimulatedRow>& rows) {
  std::cout << asked.platform.id << ": " << asked.job.nodes << " nodes of " << asked.job.ranks_per_node
            << " ranks, simulated, us\n\n| collective | size |";
  for (const std::string& selector : asked.selectors) std::cout << ' ' << selector << " |";
  std::cout << " Plait | best / Plait | of bound | global traffic | plan |\n| --- | ---: |";
  for (std::size_t i = 0; i < asked.selectors.size(); ++i) std::cout << " ---: |";
  std::cout << " ---: | ---: | ---: | ---: | --- |\n";
  double logarithms = 0;
  int compared = 0;
  for (const SimulatedRow& row : rows) {
    std::cout << "| " << name(row.collective) << " | " << format_bytes(row.bytes) << " |";
    for (const std::string& selector : asked.selectors)
      std::cout << ' ' << microseconds(row.host.at(selector).seconds) << " |";
    const double least = least_seconds(row.collective, row.bytes, asked.job, asked.platform);
    const double seconds = row.plait.seconds;
    const double ratio = seconds > 0 ? row.least_of_hosts(&Simulated::seconds) / seconds : 0;
    const double traffic = row.least_of_hosts(&Simulated::global_bytes);
    if (ratio > 0) logarithms += std::log(ratio), ++compared;
    std::cout << ' ' << microseconds(seconds) << " | " << (ratio > 0 ? number(ratio, "%.2f") : "-") << " | "
              << (seconds > 0 ? number(100 * least / seconds, "%.0f %%") : "-") << " | "
              << (traffic > 0 ? number(row.plait.global_bytes / traffic, "%.2f") : "-") << " | "
              << (row.problem.empty() ? row.plan : row.problem) << " |\n";
  }
  if (compared > 0)
    std::cout << "\nGeometric mean of best / Plait: " << number(std::exp(logarithms / compared), "%.2f") << '\n';
}

// The others' times over Plait's, a panel a collective.
ScalePicture picture(const Asked& asked, const std::vector<SimulatedRow>& rows) {
  ScalePicture picture{.title = asked.platform.id + ": " + std::to_string(asked.job.nodes) + " nodes of " +
                                std::to_string(asked.job.ranks_per_node) + " ranks",
                       .subtitle = "simulated",
                       .axis = "time over that of Plait's plan; above 1 Plait is faster",
                       .scale = "size"};
  for (const SimulatedRow& row : rows) {
    const auto known = std::ranges::find(picture.panels, name(row.collective), &ScalePanel::title);
    const bool is_new = known == picture.panels.end();
    if (is_new) picture.panels.push_back({.title = std::string(name(row.collective))});
    ScalePanel& panel = is_new ? picture.panels.back() : *known;
    if (is_new)
      for (const std::string& selector : asked.selectors) panel.curves.push_back({.name = selector});
    for (ScaleCurve& curve : panel.curves)
      curve.values.push_back(row.plait.seconds > 0 ? row.host.at(curve.name).seconds / row.plait.seconds : 0);
    if (picture.panels.size() > 1) continue;
    picture.nodes.push_back(static_cast<int>(row.bytes));
    picture.marks.push_back(format_bytes(row.bytes));
  }
  return picture;
}

Json to_json(const Asked& asked, const std::vector<SimulatedRow>& rows) {
  Json json = {
      {"platform", asked.platform.id}, {"nodes", asked.job.nodes}, {"ranks_per_node", asked.job.ranks_per_node}};
  json["rows"] = Json::array();
  for (const SimulatedRow& row : rows) {
    Json one = {{"collective", std::string(name(row.collective))},
                {"bytes", row.bytes},
                {"seconds", Json::object()},
                {"global_bytes", Json::object()},
                {"least_seconds", least_seconds(row.collective, row.bytes, asked.job, asked.platform)},
                {"plan", row.plan}};
    for (const auto& [selector, found] : row.host) {
      one["seconds"][selector] = found.seconds;
      one["global_bytes"][selector] = found.global_bytes;
    }
    if (row.plait.seconds > 0) {
      one["seconds"]["plait"] = row.plait.seconds;
      one["global_bytes"]["plait"] = row.plait.global_bytes;
    }
    if (!row.problem.empty()) one["problem"] = row.problem;
    json["rows"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

void add_collective_simulation(CommandLine line, CollectiveSimulationOptions& options) {
  line.option("--platform", options.platform, "fat-tree, dragonfly, torus, or a file of SimGrid's with one <cluster>")
      .shows_default();
  line.option("--nodes", options.nodes, "the job's, the platform's first ones").shows_default();
  line.option("--ppn", options.ranks_per_node, "ranks of a node").shows_default();
  line.option("--collectives", options.collectives, "a list").shows_default();
  line.option("--sizes", options.sizes,
              "bytes of the vector, of all ranks together (allgather, reduce_scatter_block), of a pair (alltoall)")
      .shows_default();
  line.option("--selectors", options.selectors,
              "whose algorithms to simulate beside Plait's plans: also binomial, trees")
      .shows_default();
  line.flag("--alone", options.alone,
            "Plait's plans beside binomial trees only: for machines on which the others take too long");
  line.option("--svg", options.svg, "draw the others' times over Plait's into this file");
  line.flag("--json", options.json, "print JSON");
}

Result<int> simulate_collective(const CollectiveSimulationOptions& options) {
  const Result<Asked> asked = read(options);
  if (!asked.ok()) return asked.status();
  const Result<std::vector<SimulatedRow>> rows = simulate(*asked, options);
  end_notes();
  if (!rows.ok()) return rows.status();
  if (!options.svg.empty())
    if (const Status written = replace_file(options.svg, scale_svg(picture(*asked, *rows))); !written.ok())
      return Status(written.code(), "--svg " + written.message());
  if (options.json)
    std::cout << to_json(*asked, *rows).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  else
    print(*asked, *rows);
  return std::ranges::any_of(*rows, [](const SimulatedRow& row) { return row.plait.seconds <= 0; }) ? 1 : 0;
}

}  // namespace plait::tuner
