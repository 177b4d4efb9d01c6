#include "tuner/commands/overlap_measured.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/overlap/contention_fit.h"
#include "plan/overlap/plan_reductions.h"
#include "topo/crowding.h"
#include "topo/shape.h"
#include "tuner/commands/grid_options.h"
#include "tuner/commands/overlap_plan.h"
#include "tuner/measure/bench_measure.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/overlap_measure.h"
#include "tuner/measure/session.h"
#include "tuner/text/overlap_report.h"
#include "tuner/text/progress_bar.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

enum Exit : int { success = 0, refused = 1, bad_input = 2 };

constexpr std::size_t least_bytes = 4096, most_bytes = std::size_t{1} << 30, most_sizes = 16;
constexpr int most_repeats = 1000;

// As they are understood.
struct Task {
  KernelKind kernel;
  std::vector<CommunicationShare> shares;
  std::vector<std::size_t> sizes;
  FitOptions fit;
};

Result<std::vector<std::size_t>> parse_sizes(const std::string& text) {
  std::vector<std::size_t> sizes;
  for (const std::string& word : split(text, ',')) {
    const auto bytes = parse_bytes(word);
    if (!bytes.ok() || *bytes < least_bytes || *bytes > most_bytes)
      return {Code::invalid, "--bytes: \"" + word + "\": expected 4 KiB to 1 GiB"};
    sizes.push_back(*bytes / 4 * 4);
  }
  if (sizes.empty() || sizes.size() > most_sizes) return {Code::invalid, "--bytes: expected 1 to 16 sizes"};
  return sizes;
}

Result<FitOptions> parse_exponent(const std::string& text) {
  if (text == "free") return FitOptions{std::nullopt};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0 && value <= 10))
    return {Code::invalid, "--g4: \"" + text + "\": expected free, or a positive number such as 0.6"};
  return FitOptions{value};
}

Result<Task> understand(const OverlapMeasureOptions& options) {
  if (options.repeats < 1 || options.repeats > most_repeats)
    return Status(Code::invalid, "--repeats: expected a whole number from 1 to 1000");
  const auto kernel = kernel_named(options.kernel);
  if (!kernel.ok()) return kernel.status();
  auto shares = parse_shares(options.shares);
  if (!shares.ok()) return shares.status();
  auto sizes = parse_sizes(options.bytes);
  if (!sizes.ok()) return sizes.status();
  const auto fit = parse_exponent(options.g4);
  if (!fit.ok()) return fit.status();
  return Task{*kernel, std::move(*shares), std::move(*sizes), *fit};
}

class ContentionMeasurement {
 public:
  ContentionMeasurement(MpiSession& session, const OverlapMeasureOptions& options, Task task)
      : session_(session), options_(options), task_(std::move(task)) {}

  Result<int> run() {
    const std::vector<Location> locations = gather_locations(session_);
    hierarchy_ = Hierarchy::from_locations(locations);
    contention_.fingerprint = job_fingerprint(session_, hierarchy_);
    if (const Status ready = warm_up(session_); !ready.ok()) return say(ready, refused);
    // Rank 0 alone looks at the plans, as it alone needs them; what it cannot do ends all.
    const Status counted = agreed(session_.rank() == 0 ? count_reductions(ranks_per_core(locations)) : Status());
    if (!counted.ok()) return say(counted, bad_input);
    OverlapSampling sampling{.kernel = task_.kernel, .repeats = options_.repeats};
    if (!options_.quiet) sampling.progress = print_progress;
    auto samples = sample_overlap(session_, task_.shares, task_.sizes, sampling);
    if (!samples.ok()) return say(samples.status(), samples.status().code() == Code::invalid ? bad_input : refused);
    contention_.agreement = samples->agreement;
    contention_.samples = std::move(samples->samples);
    if (session_.rank() == 0) take_plans(samples->plans);
    const Status fitted = agreed(session_.rank() == 0 ? fit() : Status());
    if (!fitted.ok()) return say(fitted, refused);
    const Status written = agreed(session_.rank() == 0 ? write() : Status());
    if (!written.ok()) return say(written, bad_input);
    if (session_.rank() == 0) print(samples->plans);
    return int{success};
  }

 private:
  // Start-up and moved bytes of the plans that the planner takes here.
  Status count_reductions(double crowding) {
    auto machine = load_machine(options_.machine);
    if (!machine.ok()) return machine.status();
    // As the planner weighs it in a job; a machine file says its own.
    if (machine_named(options_.machine).ok()) machine->ranks_per_core = crowding;
    machine_ = *machine;
    contention_.system = machine->name;
    contention_.kernel = options_.kernel;
    contention_.shape = shape_text(hierarchy_, 1);
    contention_.nodes = hierarchy_.nodes();
    contention_.ranks = session_.ranks();
    contention_.latency = machine->levels.front().latency;
    auto reductions = plan_reductions(reduction_sizes(most_bytes), {.hierarchy = hierarchy_, .machine = *machine});
    if (!reductions.ok()) return reductions.status();
    contention_.reductions = std::move(*reductions);
    return {};
  }

  // Of the sizes that were measured the plans are known: a job's table, and what it measured of its network, may have
  // taken others than the machine's figures do.
  void take_plans(const std::vector<std::string>& plans) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      auto cost = plan_reduction(task_.sizes[i], plans[i], {.hierarchy = hierarchy_, .machine = machine_});
      if (!cost.ok()) continue;  // a plan's file, say
      auto& list = contention_.reductions;
      const auto smaller = [](const ReductionCost& entry, std::size_t bytes) { return entry.bytes < bytes; };
      const auto place = std::lower_bound(list.begin(), list.end(), task_.sizes[i], smaller);
      if (place != list.end() && place->bytes == task_.sizes[i])
        *place = std::move(*cost);
      else
        list.insert(place, std::move(*cost));
    }
  }

  Status fit() {
    const ReductionCosts costs = interpolated(contention_.reductions);
    const auto fitted = fit_contention(contention_.samples, costs, task_.fit);
    if (!fitted.ok()) return fitted.status();
    contention_.fit = *fitted;
    if (!options_.table) return {};
    auto table = measured_table(contention_.samples, costs);
    if (!table.ok()) return table.status();
    contention_.table = std::move(*table);
    return {};
  }

  Status write() const { return replace_file(options_.output, contention_json(contention_)); }

  // Rank 0's status on all ranks; its message stays there.
  Status agreed(const Status& mine) {
    const bool failed = session_.maxima(std::vector<double>{mine.ok() ? 0. : 1.})[0] > 0;
    return failed && mine.ok() ? Status(Code::invalid, "rank 0 failed") : mine;
  }

  void print(const std::vector<std::string>& plans) const {
    if (options_.json) {
      std::cout << contention_json(contention_);
      return;
    }
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const ReductionCost cost = interpolated(contention_.reductions)(static_cast<double>(task_.sizes[i]));
      std::cout << format_bytes(task_.sizes[i]) << ": " << plans[i] << ", a " << format_seconds(cost.startup)
                << ", moves " << format_bytes(static_cast<std::size_t>(cost.moved)) << '\n';
    }
    std::cout << contention_text(contention_);
  }

  int say(const Status& status, Exit code) {
    session_.say_once("plait overlap: " + status.message());
    return code;
  }

  MpiSession& session_;
  const OverlapMeasureOptions& options_;
  const Task task_;
  Hierarchy hierarchy_;
  Machine machine_;        // known on rank 0
  Contention contention_;  // complete on rank 0
};

}  // namespace

Result<int> measure_overlap(const OverlapMeasureOptions& options) {
  auto task = understand(options);
  if (!launched_by_mpirun())
    return task.ok() ? Status(Code::invalid, "expected a job of two or more ranks: mpirun -n 2 plait overlap measure")
                     : task.status();
  // The helper thread is what has a share; the plugin reads this when MPI starts.
  setenv("PLAIT_PROGRESS", "thread", 1);
  auto session = MpiSession::start();
  if (!session.ok()) return session.status();
  if (task.ok() && session->ranks() < 2)
    task = Status(Code::invalid, "it measures reductions of two or more ranks; expected mpirun -n 2 or more");
  if (task.ok()) return ContentionMeasurement(*session, options, std::move(*task)).run();
  session->say_once("plait overlap: " + task.status().message());
  return int{bad_input};
}

}  // namespace plait::tuner
