#include "tuner/commands/tune_measured.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/file.h"
#include "core/units.h"
#include "plan/choose/planner.h"
#include "plan/choose/shape_tuner.h"
#include "plan/choose/table.h"
#include "topo/crowding.h"
#include "topo/shape.h"
#include "tuner/commands/grid_options.h"
#include "tuner/measure/bench_measure.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/measure_agenda.h"
#include "tuner/measure/session.h"
#include "tuner/measure/tune_measure.h"
#include "tuner/text/job_shape.h"
#include "tuner/text/measured_report.h"
#include "tuner/text/progress_bar.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

enum Exit : int { success = 0, refused = 1, bad_input = 2 };

constexpr double longest_seconds = 86400;

// As they are understood.
struct Task {
  std::vector<Collective> collectives;
  SizeSpan span;
};

Result<std::vector<Collective>> parse_collectives(const std::string& list) {
  std::vector<Collective> all, chosen;
  std::string names;
  for (int number = 0; number < planned_collectives; ++number) {
    const auto collective = static_cast<Collective>(number);
    if (!is_tuned(collective)) continue;
    all.push_back(collective);
    names += ", " + std::string(name(collective));
  }
  if (list == "all") return all;
  for (const std::string& word : split(list, ',')) {
    const auto known = collective_named(word);
    if (!known || !is_tuned(*known))
      return {Code::invalid, "--collectives: \"" + word + "\": expected all, or some of " + names.substr(2)};
    if (std::find(chosen.begin(), chosen.end(), *known) == chosen.end()) chosen.push_back(*known);
  }
  return chosen;
}

Result<std::size_t> parse_size(const char* option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes.ok()) return {Code::invalid, std::string(option) + ": " + bytes.status().message()};
  if (*bytes == 0 || *bytes > largest_tuned_bytes)
    return {Code::invalid, std::string(option) + ": \"" + text + "\": expected 1 B to 1 GiB"};
  return bytes;
}

Result<Task> understand(const TuneMeasuredOptions& options) {
  if (!std::isfinite(options.seconds) || options.seconds <= 0 || options.seconds > longest_seconds)
    return Status(Code::invalid, "--seconds: expected a positive number, at most 86400");
  auto collectives = parse_collectives(options.collectives);
  if (!collectives.ok()) return collectives.status();
  const auto least = parse_size("--min", options.least), most = parse_size("--max", options.most);
  if (!least.ok()) return least.status();
  if (!most.ok()) return most.status();
  if (*least > *most)
    return Status(Code::invalid, "--min " + options.least + ": expected at most --max, which is " + options.most);
  return Task{std::move(*collectives), {*least, *most}};
}

class MeasuredTuning {
 public:
  MeasuredTuning(MpiSession& session, const TuneMeasuredOptions& options, Task task)
      : session_(session), options_(options), task_(std::move(task)) {}

  Result<int> run() {
    const double begin_s = session_.wall_seconds();
    const std::vector<Location> locations = gather_locations(session_);
    hierarchy_ = Hierarchy::from_locations(locations);
    if (const Status tunable = check_shape(); !tunable.ok()) return say(tunable, refused);
    const auto agenda = share_agenda(ranks_per_core(locations));
    if (!agenda.ok()) return say(agenda.status(), bad_input);
    if (const Status ready = warm_up(session_); !ready.ok()) return say(ready, refused);
    TuneMeasureOptions measuring{.seconds = options_.seconds};
    if (!options_.quiet) measuring.progress = print_progress;
    auto measured = measure_agenda(session_, shape_of(locations), *agenda, measuring);
    if (!measured.ok()) return say(measured.status(), refused);
    if (measured->sizes.empty())
      return say(Status(Code::unavailable, "no size could be measured: they are too large, or --seconds too few"),
                 refused);
    const TuningTable table{machine_, job_fingerprint(session_, hierarchy_), {tuned_shape(*measured)}};
    if (const Status written = write(table); !written.ok())
      return say(written, written.code() == Code::invalid ? bad_input : refused);
    print({machine_, session_.ranks(), table.shapes.front(), std::move(*measured), session_.wall_seconds() - begin_s});
    return int{success};
  }

 private:
  Status check_shape() {
    shape_ = shape_text(hierarchy_, 1);
    if (session_.ranks() > most_team_ranks)
      return {Code::unsupported, "expected at most " + std::to_string(most_team_ranks) +
                                     " ranks: Plait leaves larger communicators to the host"};
    if (shape_.empty())
      return {Code::unsupported,
              "a table has no name for this job's shape, which is uneven on several levels: " + hierarchy_.describe()};
    if (load_config_from_process().config.disable) return {Code::unavailable, "Plait is turned off (PLAIT_DISABLE)"};
    return {};
  }

  // Rank 0 alone reads the machine file, so that all ranks do the same whatever their nodes' files are. The message of
  // a failure is rank 0's.
  Result<std::vector<AgendaItem>> share_agenda(double crowding) {
    Status made;
    std::string text;
    if (session_.rank() == 0) {
      const auto agenda = agenda_of(crowding);
      made = agenda.ok() ? Status() : agenda.status();
      if (agenda.ok()) text = agenda_text(*agenda);
    }
    text = session_.text_of_root(text);
    if (text.empty()) return made.ok() ? Status(Code::invalid, "rank 0 cannot use the machine") : made;
    return parse_agenda(text);
  }

  Result<std::vector<AgendaItem>> agenda_of(double crowding) {
    auto machine = load_machine(options_.machine);
    if (!machine.ok()) return machine.status();
    machine_ = machine->name;
    // As the planner weighs it in a job; a machine file says its own.
    if (machine_named(options_.machine).ok()) machine->ranks_per_core = crowding;
    return make_agenda(task_.collectives, task_.span, {.hierarchy = hierarchy_, .machine = *machine});
  }

  TunedShape tuned_shape(const TuneMeasurement& measured) const {
    TunedShape shape{shape_, {}};
    for (const Collective collective : task_.collectives) {
      std::vector<MeasuredSize> own;
      for (const MeasuredSize& size : measured.sizes)
        if (size.collective == collective) own.push_back(size);
      std::vector<TunedRange> ranges = measured_ranges(own, task_.span);
      if (!ranges.empty()) shape.collectives.push_back({collective, std::move(ranges)});
    }
    return shape;
  }

  // The same on all ranks, but for the message, which is rank 0's.
  Status write(const TuningTable& table) {
    Status written;
    if (session_.rank() == 0 && !options_.output.empty()) written = replace_file(options_.output, table_json(table));
    const std::array failed = {written.ok() ? 0.0 : written.code() == Code::invalid ? 2.0 : 1.0};
    const double worst = session_.maxima(failed)[0];
    if (worst == 0) return {};
    return {worst == 2 ? Code::invalid : Code::unavailable, "--output " + written.message()};
  }

  void print(const MeasuredReport& report) const {
    if (session_.rank() != 0) return;
    if (options_.json)
      std::cout << measured_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    else
      std::cout << measured_text(report);
  }

  int say(const Status& status, Exit code) {
    session_.say_once("plait tune: " + status.message());
    return code;
  }

  MpiSession& session_;
  const TuneMeasuredOptions& options_;
  const Task task_;
  Hierarchy hierarchy_;
  std::string shape_, machine_;  // the machine's name: on rank 0
};

}  // namespace

Result<int> tune_measured(const TuneMeasuredOptions& options) {
  auto task = understand(options);
  if (!launched_by_mpirun())
    return task.ok() ? Status(Code::invalid, "expected a job of two or more ranks: mpirun -n 2 plait tune --measure")
                     : task.status();
  // Plans are compared here: no call may go another way for a trial of the job's own.
  setenv("PLAIT_TRIAL", "0", 1);
  auto session = MpiSession::start();
  if (!session.ok()) return session.status();
  if (task.ok() && session->ranks() < 2)
    task = Status(Code::invalid, "--measure compares collectives of two or more ranks; expected mpirun -n 2 or more");
  if (task.ok()) return MeasuredTuning(*session, options, std::move(*task)).run();
  session->say_once("plait tune: " + task.status().message());
  return int{bad_input};
}

}  // namespace plait::tuner
