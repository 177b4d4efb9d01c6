// plait advise: whether the ranks of a job that has run would better be elsewhere, or bound. Output: docs/placement.md.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/text/launcher_options.h"
#include "tuner/text/mapping_advice.h"
#include "tuner/text/placement_advice.h"
#include "tuner/text/report_reader.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

class AdviseCommand : public Command {
 public:
  std::string_view name() const override { return "advise"; }
  std::string_view summary() const override {
    return "say whether the ranks of a job would better be elsewhere, or bound, by its report";
  }

  void add_options(CommandLine line) override {
    line.option("report", report_, "what PLAIT_REPORT=FILE.json wrote").required();
    line.option("--machine", machine_,
                "whose figures count: a built-in machine or a machine file (default: the default machine with the "
                "network's rate that the job has measured)");
    line.flag("--json", json_, "print JSON");
  }

  Result<int> run() override {
    const auto text = read_file(report_, longest_report_file);
    if (!text.ok()) return text.status();
    const auto job = read_report(*text);
    if (!job.ok()) return Status(job.status().code(), "\"" + report_ + "\": " + job.status().message());
    const auto machine = machine_of(*job);
    if (!machine.ok()) return machine.status();
    print(*job, placement_advice(placement_of(*job, *machine)), mapping_of(*job));
    return 0;
  }

 private:
  Result<Machine> machine_of(const ReportedJob& job) const {
    if (!machine_.empty()) return load_machine(machine_);
    Machine machine = default_machine();
    if (job.network_seconds_per_byte > 0) machine.levels.front().port_seconds_per_byte = job.network_seconds_per_byte;
    machine.ranks_per_core = job.ranks_per_core;
    return machine;
  }

  static JobPlacement placement_of(const ReportedJob& job, const Machine& machine) {
    JobPlacement placement{.nodes = {}, .machine = machine, .traffic = job.traffic, .launcher = launcher_of(job.mpi)};
    for (const RankPlace& place : job.places) placement.nodes.push_back(place.node);
    return placement;
  }

  // Empty where nothing but the host's own calls was seen: then nothing of ours would be faster.
  static std::vector<std::string> mapping_of(const ReportedJob& job) {
    return job.accelerated ? mapping_advice(job.places, launcher_of(job.mpi)) : std::vector<std::string>();
  }

  void print(const ReportedJob& job, const PlacementAdvice& placement, const std::vector<std::string>& mapping) const {
    if (json_) {
      const Json document = {
          {"mpi", job.mpi},
          {"ranks", job.ranks},
          {"placement", {{"better", placement.better}, {"times", placement.times}, {"sentence", placement.sentence}}},
          {"mapping", mapping}};
      std::cout << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
      return;
    }
    std::cout << placement.sentence << '\n';
    for (const std::string& sentence : mapping) std::cout << sentence << '\n';
  }

  std::string report_, machine_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> advise_command() { return std::make_unique<AdviseCommand>(); }

}  // namespace plait::tuner
