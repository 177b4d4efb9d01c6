// plait probe: measures the links of the system that the job runs on, and writes them as a machine file
// (docs/probe.md).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/channel_kind.h"
#include "core/config.h"
#include "core/file.h"
#include "core/units.h"
#include "topo/crowding.h"
#include "tuner/commands/command.h"
#include "tuner/measure/device_measure.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/probe_measure.h"
#include "tuner/measure/probe_samples.h"
#include "tuner/measure/session.h"
#include "tuner/text/progress_bar.h"

namespace plait::tuner {
namespace {

enum Exit : int { success = 0, refused = 1, bad_input = 2 };

constexpr double longest_seconds = 3600;

struct Options {
  std::string output;
  std::string name = "probed";
  double seconds = 20;
  double most_noise = 0.25;
  std::string driver = "libcuda.so.1";
  bool quiet = false;
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string rate_text(double bytes_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g GB/s", bytes_per_second / 1e9);
  return text;
}

// ---- What is printed ----

std::string link_text(const LinkSamples& samples, const LinkLevel& level) {
  std::string text = level.name + " (over " + samples.channels + ")\n";
  const auto row = [&](const char* label, const std::string& value) {
    char line[160];
    std::snprintf(line, sizeof line, "  %-28s %s\n", label, value.c_str());
    text += line;
  };
  row("latency (alpha)", format_seconds(level.latency));
  row("overhead of a message", format_seconds(level.overhead));
  if (level.cpu_seconds_per_byte > 0) row("processor's rate (beta)", rate_text(1 / level.cpu_seconds_per_byte));
  if (level.port_seconds_per_byte > 0) {
    row("port's rate (beta)", rate_text(1 / level.port_seconds_per_byte) +
                                  (level.half_duplex ? ", both directions together" : " in each direction"));
    row("port's messages a second", std::to_string(std::lround(1 / level.port_seconds_per_message)));
  }
  for (std::size_t count = 1; count <= samples.bytes_per_second.size(); ++count) {
    row((std::to_string(count) + (count == 1 ? " rank sends" : " ranks send")).c_str(),
        rate_text(samples.bytes_per_second[count - 1]) + ", " +
            std::to_string(std::lround(samples.messages_per_second[count - 1])) + " messages a second");
  }
  for (const ChannelLink& link : level.channels)
    row(("over " + link.channel + " alone").c_str(), format_seconds(link.latency) + ", a message every " +
                                                         format_seconds(link.overhead) + ", " +
                                                         rate_text(1 / link.seconds_per_byte));
  return text;
}

std::string device_text(const char* label, const DeviceLink& link) {
  char line[160];
  std::snprintf(line, sizeof line, "  %-28s %s, %s\n", label, format_seconds(link.latency).c_str(),
                rate_text(1 / link.seconds_per_byte).c_str());
  return link.known() ? line : "";
}

// Of the memory of GPUs.
std::string devices_text(const Machine& machine) {
  std::string text = device_text("to a device", machine.to_device) + device_text("from a device", machine.from_device);
  for (const LinkLevel& level : machine.levels)
    text += device_text(("over cuda, by " + level.name).c_str(), level.devices);
  return text.empty() ? text : "copies of devices\n" + text;
}

std::string report(const ProbeSamples& samples, const ProbeFit& fit) {
  std::string text;
  for (std::size_t link = 0; link < samples.links.size(); ++link)
    text += link_text(samples.links[link], fit.machine.levels[link]);
  text += devices_text(fit.machine);
  const double gamma = fit.machine.reduce_seconds_per_byte;
  text += "adding what arrives (gamma)    " +
          (gamma > 0 ? rate_text(1 / gamma) : std::string("takes no time of its own")) + "\n";
  text += "residuals of the fit (root mean square):\n";
  for (const FitResidual& residual : fit.residuals)
    text += "  " + residual.level + ", " + residual.curve + ": " + percent(residual.relative) + "\n";
  for (const std::string& remark : fit.remarks) text += remark + "\n";
  return text;
}

class ProbeCommand : public Command {
 public:
  std::string_view name() const override { return "probe"; }
  std::string_view summary() const override {
    return "under mpirun: measure the links of the system that the job runs on, as a machine file";
  }

  void add_options(CommandLine line) override {
    line.option("-o,--output", options_.output, "the machine file to write").required();
    line.option("--name", options_.name, "of the machine, in the file").shows_default();
    line.option("--seconds", options_.seconds, "to spend, about").shows_default();
    line.option("--most-noise", options_.most_noise,
                "refuse to write where three quarters of the points do not vary by less, as a share of their times")
        .shows_default();
    line.option("--driver", options_.driver,
                "the library of the GPUs' driver: copies of devices are measured where it is, and PLAIT_CHANNELS has "
                "cuda; none: not")
        .shows_default();
    line.flag("--quiet", options_.quiet, "no progress");
  }

  Result<int> run() override {
    if (!launched_by_mpirun()) return {Code::invalid, "expected a job of two or more ranks: mpirun -n 2 plait probe"};
    auto session = MpiSession::start();
    if (!session.ok()) return session.status();
    if (const Status checked = check(session->ranks()); !checked.ok())
      return say(*session, checked.message(), bad_input);
    const std::vector<Location> locations = gather_locations(*session);
    Hierarchy hierarchy = Hierarchy::from_locations(locations);
    Result<ProbeSamples> samples = take_samples(*session, hierarchy, measuring());
    if (!samples.ok()) return say(*session, samples.status().message(), refused);
    if (const Status measured = measure_devices(*session, hierarchy, *samples); !measured.ok())
      return say(*session, measured.message(), refused);
    samples->ranks_per_core = ranks_per_core(locations);
    ProbeFit fit = fit_machine(*samples);
    fit.machine.name = options_.name;
    fit.machine.host = host_curves(*samples);
    fit.machine.fingerprint = job_fingerprint(*session, hierarchy);
    if (session->rank() == 0) std::cout << report(*samples, fit) << std::flush;
    if (!fit.doubt.empty()) return say(*session, fit.doubt + "; nothing is written", refused);
    const double found = noise(*samples);
    if (found > options_.most_noise) return say(*session, too_noisy(found), refused);
    Status written;
    if (session->rank() == 0) {
      written = replace_file(options_.output, machine_json(fit.machine) + '\n');
      if (written.ok()) std::cout << "noise " << percent(found) << "; written to " << options_.output << std::endl;
    }
    const double failed[] = {written.ok() ? 0.0 : 1.0};
    return session->maxima(failed)[0] > 0 ? say(*session, written.message(), bad_input) : int{success};
  }

 private:
  Status check(int ranks) const {
    const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
    if (ranks < 2) return {Code::invalid, "it measures between ranks; expected mpirun -n 2 or more"};
    if (!positive(options_.seconds) || options_.seconds > longest_seconds)
      return {Code::invalid, "--seconds: expected a positive number, at most 3600"};
    if (!positive(options_.most_noise))
      return {Code::invalid, "--most-noise: expected a positive number, such as 0.25"};
    if (options_.name.empty()) return {Code::invalid, "--name: expected a name"};
    return {};
  }

  // Behind the messages: where a driver is loaded, each call asks it whose memory it is given. Who has a context on a
  // GPU says which, so that the hierarchy has levels of GPUs from then on. Nothing where some ranks have none.
  Status measure_devices(MpiSession& session, Hierarchy& hierarchy, ProbeSamples& samples) const {
    const std::vector<std::string> channels = load_config_from_process().config.channels;
    if (options_.driver == "none" || std::ranges::find(channels, name_of_cuda()) == channels.end()) return {};
    const Result<std::unique_ptr<ProbedDevice>> device = ProbedDevice::open(session, options_.driver);
    if (!device.ok()) {
      if (!options_.quiet) session.say_once("plait probe: copies of devices: " + device.status().message());
      return {};
    }
    Hierarchy located = Hierarchy::from_locations(gather_locations(session));
    samples.links = links_between(located, hierarchy, samples.links);
    hierarchy = std::move(located);
    return (*device)->measure(session, hierarchy, samples);
  }
  static std::string name_of_cuda() { return std::string(plait::name(ChannelKind::cuda)); }

  ProbeOptions measuring() const {
    ProbeOptions options{.seconds = options_.seconds, .channels = load_config_from_process().config.channels};
    if (!options_.quiet) options.progress = print_progress;
    return options;
  }

  std::string too_noisy(double found) const {
    return "too noisy: a quarter of the points vary by " + percent(found) +
           " of their times or more, expected at most " + percent(options_.most_noise) +
           " (--most-noise); nothing is written";
  }

  static std::map<std::string, std::vector<HostPoint>> host_curves(const ProbeSamples& samples) {
    std::map<std::string, std::vector<HostPoint>> curves;
    for (const auto& [collective, points] : samples.host)
      for (const ProbePoint& point : points) curves[collective].push_back({point.bytes, point.seconds});
    return curves;
  }

  static int say(MpiSession& session, const std::string& message, Exit code) {
    session.say_once("plait probe: " + message);
    return code;
  }

  Options options_;
};

}  // namespace

std::unique_ptr<Command> probe_command() { return std::make_unique<ProbeCommand>(); }

}  // namespace plait::tuner
