// Replays a mix of collective calls under mpirun, as the host and as Plait run them, in turn, and prints the ratio of
// the whole and of each kind of call. perf/mix runs it on emulated clusters.
//
//   mpirun -n 8 mix_replay FILE [--seconds S] [--shorten N] [--json]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "perf/layer.h"
#include "perf/mix_calls.h"
#include "perf/mix_file.h"
#include "plait/plait.h"
#include "tuner/measure/bench_measure.h"
#include "tuner/measure/session.h"

namespace plait::perf {
namespace {

enum Exit : int { success = 0, wrong_result = 1, bad_input = 2 };

constexpr int fewest_passes = 3, most_passes = 1000;
constexpr int warm_up_calls = 4;  // of each kind: plans, connections, caches

struct Options {
  std::string file;
  double seconds = 5;
  int shorten = 1;
  bool json = false;
};

struct Pass {
  double whole_s = 0;                // of the slowest rank
  std::vector<double> kinds_s = {};  // of each kind together, mean of the ranks
};

// Medians over the passes of one side.
struct Times {
  double whole_s = 0;
  std::vector<double> kinds_s = {};
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Times medians(const std::vector<Pass>& passes) {
  Times times;
  std::vector<double> values;
  for (const Pass& pass : passes) values.push_back(pass.whole_s);
  times.whole_s = median(values);
  for (std::size_t kind = 0; kind < passes.front().kinds_s.size(); ++kind) {
    values.clear();
    for (const Pass& pass : passes) values.push_back(pass.kinds_s[kind]);
    times.kinds_s.push_back(median(values));
  }
  return times;
}

class Replay {
 public:
  Replay(MpiSession& session, const Options& options, Mix mix)
      : session_(session), options_(options), mix_(std::move(mix)), order_(call_order(mix_)) {}

  Status run() {
    if (Status ready = make_calls(); !ready.ok()) return ready;
    if (Status ready = warm_up(session_); !ready.ok()) return ready;
    const auto few = call_order(shortened_to(warm_up_calls));
    for (const bool accelerated : {false, true}) {
      if (const auto passed = pass(few, accelerated); !passed.ok()) return passed.status();
    }
    double spent_s = 0;
    while (host_.size() < fewest_passes || (spent_s < options_.seconds && host_.size() < most_passes)) {
      for (const bool accelerated : {false, true}) {
        const auto passed = pass(order_, accelerated);
        if (!passed.ok()) return passed.status();
        spent_s += passed->whole_s;
        (accelerated ? plait_ : host_).push_back(*passed);
      }
    }
    return {};
  }

  void print() const {
    if (session_.rank() != 0) return;
    const Times host = medians(host_), plait = medians(plait_);
    if (options_.json) {
      print_json(host, plait);
    } else {
      print_table(host, plait);
    }
  }

 private:
  Status make_calls() {
    Status failed;
    for (const MixCalls& kind : mix_.kinds) {
      auto call = make_mix_call(kind, session_);
      if (!call.ok()) {
        failed = call.status();
        break;
      }
      calls_.push_back(std::move(*call));
    }
    const std::array somewhere = {failed.ok() ? 0.0 : 1.0};
    if (session_.maxima(somewhere)[0] == 0) return {};
    return failed.ok() ? Status(Code::unavailable, "no memory on some rank") : failed;
  }

  Mix shortened_to(int calls) const {
    Mix mix = mix_;
    for (MixCalls& kind : mix.kinds) kind.calls = std::min(kind.calls, calls);
    return mix;
  }

  // The calls in that order. Clocks stop between calls, without waiting for each other.
  Result<Pass> pass(const std::vector<std::uint16_t>& order, bool accelerated) {
    for (const auto& call : calls_) call->prepare(++key_);
    std::vector<double> mine(calls_.size());
    session_.barrier();
    plait_set_enabled(accelerated ? 1 : 0);
    const double begin_s = session_.wall_seconds();
    double now_s = begin_s;
    for (const std::uint16_t kind : order) {
      calls_[kind]->run();
      const double end_s = session_.wall_seconds();
      mine[kind] += end_s - now_s;
      now_s = end_s;
    }
    plait_set_enabled(0);
    if (Status checked = check(accelerated); !checked.ok()) return checked;
    return Pass{.whole_s = session_.maxima(std::array{now_s - begin_s})[0], .kinds_s = means(mine)};
  }

  Status check(bool accelerated) {
    std::vector<double> wrong(calls_.size());
    for (std::size_t kind = 0; kind < calls_.size(); ++kind) wrong[kind] = calls_[kind]->right() ? 0 : 1;
    wrong = session_.maxima(wrong);
    const auto found = std::find(wrong.begin(), wrong.end(), 1.0);
    if (found == wrong.end()) return {};
    const auto kind = static_cast<std::size_t>(found - wrong.begin());
    return {Code::peer_failed,
            "wrong result of " + mix_.kinds[kind].label() + (accelerated ? " by Plait" : " by the host")};
  }

  std::vector<double> means(const std::vector<double>& mine) {
    const auto bytes = session_.gather_bytes(std::as_bytes(std::span(mine)));
    std::vector<double> all(bytes.size() / sizeof(double)), result(mine.size());
    std::memcpy(all.data(), bytes.data(), bytes.size());
    for (std::size_t index = 0; index < all.size(); ++index) {
      result[index % mine.size()] += all[index] / session_.ranks();
    }
    return result;
  }

  void print_table(const Times& host, const Times& plait) const {
    std::printf("%s: %d ranks, %zu calls, %zu passes of each\n\n", mix_.name.c_str(), session_.ranks(), order_.size(),
                host_.size());
    std::printf("%-24s %8s %12s %12s %7s\n", "calls", "number", "host us", "Plait us", "ratio");
    for (std::size_t index = 0; index < mix_.kinds.size(); ++index) {
      const MixCalls& kind = mix_.kinds[index];
      std::printf("%-24s %8d %12.2f %12.2f %7.2f\n", kind.label().c_str(), kind.calls,
                  host.kinds_s[index] / kind.calls * 1e6, plait.kinds_s[index] / kind.calls * 1e6,
                  host.kinds_s[index] / plait.kinds_s[index]);
    }
    std::printf("%-24s %8zu %12.0f %12.0f %7.2f\n", "whole", order_.size(), host.whole_s * 1e6, plait.whole_s * 1e6,
                host.whole_s / plait.whole_s);
  }

  void print_json(const Times& host, const Times& plait) const {
    nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
    for (std::size_t index = 0; index < mix_.kinds.size(); ++index) {
      const MixCalls& kind = mix_.kinds[index];
      kinds.push_back({{"calls", kind.calls},
                       {"kind", kind.label()},
                       {"host_us", host.kinds_s[index] / kind.calls * 1e6},
                       {"plait_us", plait.kinds_s[index] / kind.calls * 1e6}});
    }
    const nlohmann::ordered_json json = {{"mix", mix_.name},
                                         {"ranks", session_.ranks()},
                                         {"calls", order_.size()},
                                         {"passes", host_.size()},
                                         {"host_s", host.whole_s},
                                         {"plait_s", plait.whole_s},
                                         {"ratio", host.whole_s / plait.whole_s},
                                         {"kinds", kinds}};
    std::cout << json.dump() << '\n';
  }

  MpiSession& session_;
  const Options options_;
  const Mix mix_;
  const std::vector<std::uint16_t> order_;
  std::vector<std::unique_ptr<MixCall>> calls_;
  std::vector<Pass> host_, plait_;
  std::uint64_t key_ = 0;
};

Result<Mix> read_mix(const Options& options) {
  if (!(options.seconds > 0) || options.seconds > 86400) {
    return {Code::invalid, "--seconds: expected a positive number, at most 86400"};
  }
  if (options.shorten < 1) return {Code::invalid, "--shorten: expected a whole number from 1 on"};
  std::ifstream file(options.file);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) return {Code::invalid, options.file + ": cannot be read"};
  auto mix = parse_mix(text);
  if (!mix.ok()) return {Code::invalid, options.file + ": " + mix.status().message()};
  return shortened(std::move(*mix), options.shorten);
}

int say(MpiSession& session, const std::string& message, Exit code) {
  session.say_once("mix_replay: " + message);
  return code;
}

int replay(const Options& options) {
  auto session = MpiSession::start();
  if (!session.ok()) {
    std::cerr << "mix_replay: " << session.status().message() << '\n';
    return wrong_result;
  }
  if (session->ranks() < 2) return say(*session, "expected a job of two or more ranks: mpirun -n 2", bad_input);
  auto mix = read_mix(options);
  if (!mix.ok()) return say(*session, mix.status().message(), bad_input);
  Replay run(*session, options, std::move(*mix));
  if (const Status done = run.run(); !done.ok()) {
    return say(*session, done.message(), done.code() == Code::invalid ? bad_input : wrong_result);
  }
  run.print();
  return success;
}

}  // namespace
}  // namespace plait::perf

int main(int argc, char** argv) {
  CLI::App app("Replays a mix of collective calls as the host MPI and as Plait run them, in turn.", "mix_replay");
  plait::perf::Options options;
  app.add_option("file", options.file, "the mix (docs/bench.md)")->required();
  app.add_option("--seconds", options.seconds, "to spend; at least three passes of each")->capture_default_str();
  app.add_option("--shorten", options.shorten, "take a number of calls N times smaller")->capture_default_str();
  app.add_flag("--json", options.json, "one line of JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << std::string("mix_replay: ") + error.what() + '\n';
    return plait::perf::bad_input;
  }
  return plait::perf::replay(options);
}
