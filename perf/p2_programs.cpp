// Times the programs of reductions over axes of a process grid: perf/p2 says which, and compares with predictions.
//
//   mpirun ... p2_programs CASES.json RESULTS.json SECONDS      SECONDS: a case, for what is repeated
//
// Needs as many ranks as the cases have devices, rank = device. All groups of a case run at the same time, as those of
// a program with such a grid do. The host's Allreduce and Plait's own choice are timed among the programs.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "plait/plait.h"

// Weak, so that a library without it is refused with a message rather than by the loader.
extern "C" __attribute__((weak)) int plait_set_plan(MPI_Comm comm, const char* plan);

namespace {

using Json = nlohmann::ordered_json;

constexpr double too_slow = 1.5;               // times the best so far: a first run is enough
constexpr double too_slow_when_smaller = 1.5;  // times the best at a smaller size: not even that
constexpr std::size_t always_repeated = 10;    // of the first predicted, where they are not too slow
constexpr std::size_t fastest_repeated = 12;   // of the others
constexpr int fewest_rounds = 2, most_rounds = 25, calls_a_round = 2;
constexpr int calls_before_choice = 8;  // Plait compares with the host in its first calls

struct ProgramText {
  std::string text;  // without algorithms: what it is called at another size
  std::string plan;
  double predicted = 0;  // seconds
};

struct Case {
  std::string id;
  std::string like;  // the case of the same groups at a smaller size; empty: none
  std::vector<int> axes, reduce, devices;
  std::size_t bytes = 0;
  std::vector<ProgramText> programs;
};

enum class Kind { host, own_choice, program };

struct Contestant {
  Kind kind = Kind::program;
  ProgramText program;
  std::string state = "timed";  // "once": too slow to repeat; "skipped": too slow at a smaller size;
                                // "refused": by plait_set_plan(), or handed to the host when it should run
  std::string ran;              // what Plait says it did
  std::vector<double> seconds;  // each the slowest rank's

  double median() const;
};

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double Contestant::median() const { return quantile(seconds, 0.5); }

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "p2_programs: %s\n", message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// The largest of all ranks' values. Plait is off between measurements, so that this is the host's.
double agreed(double value) {
  double most = 0;
  MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

// ---- The process grid ----

// Coordinates of a grid rank: row-major, the last axis fastest.
std::vector<int> coordinates(int grid_rank, const std::vector<int>& axes) {
  std::vector<int> result(axes.size());
  for (std::size_t axis = axes.size(); axis-- > 0; grid_rank /= axes[axis]) result[axis] = grid_rank % axes[axis];
  return result;
}

// This rank's reduction group: those that agree on the axes that are not reduced. Ranks ascend with grid ranks.
MPI_Comm reduction_group(const Case& task) {
  const auto mine = std::find(task.devices.begin(), task.devices.end(), world_rank());
  if (mine == task.devices.end()) fail(task.id + ": no grid rank is on device " + std::to_string(world_rank()));
  const int grid_rank = static_cast<int>(mine - task.devices.begin());
  const std::vector<int> place = coordinates(grid_rank, task.axes);
  int color = 0;
  for (std::size_t axis = 0; axis < task.axes.size(); ++axis) {
    const bool reduced = std::count(task.reduce.begin(), task.reduce.end(), static_cast<int>(axis)) > 0;
    if (!reduced) color = color * task.axes[axis] + place[axis];
  }
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, grid_rank, &group);
  return group;
}

// ---- Measuring ----

class Race {
 public:
  Race(const Case& task, double seconds, const std::map<std::string, double>& slowness)
      : task_(task), budget_s_(seconds), slowness_(slowness), group_(reduction_group(task)) {
    const std::size_t floats = task.bytes / sizeof(float);
    const auto own = static_cast<float>(world_rank() + 1);
    MPI_Allreduce(&own, &expected_, 1, MPI_FLOAT, MPI_SUM, group_);
    in_.assign(floats, own);
    out_.resize(floats);
    contestants_.push_back({.kind = Kind::host, .program = {}, .ran = {}, .seconds = {}});
    contestants_.push_back({.kind = Kind::own_choice, .program = {}, .ran = {}, .seconds = {}});
    for (const ProgramText& program : task.programs) {
      contestants_.push_back({.kind = Kind::program, .program = program, .ran = {}, .seconds = {}});
    }
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;
  ~Race() { MPI_Comm_free(&group_); }

  void run() {
    for (std::size_t index = 0; index < contestants_.size(); ++index) first_runs(index);
    repeat();
  }
  const std::vector<Contestant>& contestants() const { return contestants_; }

 private:
  // Makes `contestant` do the calls that follow; false: its plan was refused.
  bool select(const Contestant& contestant) {
    if (contestant.kind == Kind::host) return true;
    plait_set_enabled(1);
    const char* plan = contestant.kind == Kind::program ? contestant.program.plan.c_str() : nullptr;
    const int refused = plait_set_plan(group_, plan) != MPI_SUCCESS ? 1 : 0;
    plait_set_enabled(0);
    return agreed(refused) == 0;
  }

  // One call, from a common start to the last rank's end.
  double call(Contestant& contestant) {
    std::fill(out_.begin(), out_.end(), 0.0f);
    MPI_Barrier(MPI_COMM_WORLD);
    plait_set_enabled(contestant.kind == Kind::host ? 0 : 1);
    const double begin_s = MPI_Wtime();
    MPI_Allreduce(in_.data(), out_.data(), static_cast<int>(in_.size()), MPI_FLOAT, MPI_SUM, group_);
    const double end_s = MPI_Wtime();
    if (contestant.kind != Kind::host) contestant.ran = plait_last_plan();
    plait_set_enabled(0);
    const auto right = [&](float value) { return value == expected_; };
    if (!std::all_of(out_.begin(), out_.end(), right)) {
      fail(task_.id + ": wrong sum by " + (contestant.kind == Kind::host ? "the host" : contestant.ran));
    }
    return agreed(end_s - begin_s);
  }

  // The first call sets up, and uses up what an idle network lends; the second counts where it has a chance.
  void first_runs(std::size_t index) {
    Contestant& contestant = contestants_[index];
    const auto smaller = slowness_.find(contestant.program.text);
    const bool slow = smaller != slowness_.end() && smaller->second > too_slow_when_smaller;
    if (index >= first_predicted_end() && slow) {
      contestant.state = "skipped";
      return;
    }
    if (!select(contestant)) {
      contestant.state = "refused";
      return;
    }
    const double first_s = call(contestant);
    if (contestant.kind == Kind::program && agreed(contestant.ran == "host" ? 1 : 0) > 0) {
      contestant.state = "refused";
      return;
    }
    for (int more = 1; contestant.kind == Kind::own_choice && more < calls_before_choice; ++more) call(contestant);
    if (first_s > too_slow * best_s_ && contestant.kind == Kind::program) {
      contestant.state = "once";
      contestant.seconds = {first_s};
      return;
    }
    contestant.seconds = {call(contestant)};
    if (contestant.kind == Kind::program) best_s_ = std::min(best_s_, contestant.seconds[0]);
  }

  // The index after the host, Plait's own choice and the first predicted programs.
  std::size_t first_predicted_end() const { return contestants_.size() - task_.programs.size() + always_repeated; }

  // What may be best: the host, Plait's own choice, the first predicted programs and the fastest so far.
  std::vector<std::size_t> field() const {
    std::vector<std::size_t> timed;
    for (std::size_t index = 0; index < contestants_.size(); ++index)
      if (contestants_[index].state == "timed") timed.push_back(index);
    const auto rest = std::stable_partition(timed.begin(), timed.end(),
                                            [&](std::size_t index) { return index < first_predicted_end(); });
    std::stable_sort(rest, timed.end(), [&](std::size_t a, std::size_t b) {
      return contestants_[a].seconds[0] < contestants_[b].seconds[0];
    });
    const auto most = static_cast<std::size_t>(rest - timed.begin()) + fastest_repeated;
    if (timed.size() > most) timed.resize(most);
    return timed;
  }

  // In rounds, each beginning with another, so that what disturbs the machine hits all alike.
  void repeat() {
    std::vector<std::size_t> repeated = field();
    const double begin_s = MPI_Wtime();
    for (int round = 0; round < most_rounds; ++round) {
      if (round >= fewest_rounds && agreed(MPI_Wtime() - begin_s) > budget_s_) break;
      std::rotate(repeated.begin(), repeated.begin() + 1, repeated.end());
      for (const std::size_t index : repeated) {
        Contestant& contestant = contestants_[index];
        if (!select(contestant)) fail(task_.id + ": " + contestant.program.plan + " was taken once and refused then");
        call(contestant);
        for (int timed = 0; timed < calls_a_round; ++timed) contestant.seconds.push_back(call(contestant));
      }
    }
  }

  const Case& task_;
  double budget_s_;
  const std::map<std::string, double>& slowness_;  // by text: times the best, at a smaller size
  MPI_Comm group_;
  std::vector<float> in_, out_;
  float expected_ = 0;
  std::vector<Contestant> contestants_;
  double best_s_ = std::numeric_limits<double>::infinity();  // of the programs
};

// ---- Cases and results ----

Case case_of(const Json& json) {
  Case result;
  result.id = json.at("id").get<std::string>();
  result.like = json.value("like", "");
  result.axes = json.at("axes").get<std::vector<int>>();
  result.reduce = json.at("reduce").get<std::vector<int>>();
  result.devices = json.at("devices").get<std::vector<int>>();
  result.bytes = json.at("bytes").get<std::size_t>();
  for (const Json& program : json.at("programs")) {
    result.programs.push_back({program.at("text").get<std::string>(), program.at("plan").get<std::string>(),
                               program.at("seconds").get<double>()});
  }
  return result;
}

std::vector<Case> read_cases(const char* path) {
  std::vector<Case> cases;
  try {
    std::ifstream file(path);
    const Json json = Json::parse(file);
    for (const Json& entry : json.at("cases")) cases.push_back(case_of(entry));
  } catch (const nlohmann::json::exception& error) {
    fail(std::string(path) + ": " + error.what());
  }
  return cases;
}

Json timing_json(const Contestant& contestant) {
  Json json;
  if (contestant.kind == Kind::program) {
    json = {{"text", contestant.program.text},
            {"plan", contestant.program.plan},
            {"predicted", contestant.program.predicted}};
  }
  json["state"] = contestant.state;
  json["ran"] = contestant.ran;
  json["runs"] = contestant.seconds.size();
  if (!contestant.seconds.empty()) {
    json["seconds"] = contestant.median();
    json["quartiles"] = {quantile(contestant.seconds, 0.25), quantile(contestant.seconds, 0.75)};
  }
  return json;
}

Json result_json(const Case& task, const std::vector<Contestant>& contestants) {
  Json json = {{"id", task.id}, {"bytes", task.bytes}, {"programs", Json::array()}};
  for (const Contestant& contestant : contestants) {
    if (contestant.kind == Kind::host) json["host"] = timing_json(contestant);
    if (contestant.kind == Kind::own_choice) json["own"] = timing_json(contestant);
    if (contestant.kind == Kind::program) json["programs"].push_back(timing_json(contestant));
  }
  return json;
}

std::map<std::string, double> slowness_of(const std::vector<Contestant>& contestants) {
  double best_s = std::numeric_limits<double>::infinity();
  for (const Contestant& contestant : contestants)
    if (contestant.kind == Kind::program) best_s = std::min(best_s, contestant.median());
  std::map<std::string, double> result;
  for (const Contestant& contestant : contestants) {
    if (contestant.kind == Kind::program && !contestant.seconds.empty())
      result[contestant.program.text] = contestant.median() / best_s;
  }
  return result;
}

void write_results(const char* path, const Json& results) {
  std::ofstream file(path);
  file << Json{{"cases", results}}.dump(1) << '\n';
  if (!file.flush()) fail(std::string(path) + " cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) fail("usage: p2_programs CASES.json RESULTS.json SECONDS");
  if (plait_set_plan == nullptr) fail("libplait.so has no plait_set_plan()");
  plait_set_enabled(0);
  const std::vector<Case> cases = read_cases(argv[1]);
  Json results = Json::array();
  std::map<std::string, std::map<std::string, double>> slowness;
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const Case& task = cases[index];
    const double begin_s = MPI_Wtime();
    Race race(task, std::atof(argv[3]), slowness[task.like]);
    race.run();
    slowness[task.id] = slowness_of(race.contestants());
    if (world_rank() != 0) continue;
    results.push_back(result_json(task, race.contestants()));
    std::fprintf(stderr, "  %zu of %zu: %s, %zu programs, %.0f s\n", index + 1, cases.size(), task.id.c_str(),
                 task.programs.size(), MPI_Wtime() - begin_s);
    write_results(argv[2], results);
  }
  MPI_Finalize();
  return 0;
}
