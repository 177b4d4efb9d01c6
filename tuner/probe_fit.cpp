#include <algorithm>
#include <cmath>
#include <functional>

#include "tuner/probe_samples.h"

namespace plait::tuner {
namespace {

// Shorter messages tell how long a message takes whatever its length, longer ones what its bytes take.
constexpr std::size_t short_bytes = 256, long_bytes = 4096;
// Both directions at once take this much longer than one where they share the link's rate; twice as long would be all
// of it.
constexpr double shares_from = 1.6;
constexpr double least_seconds = 1e-9;

double relative_error(const ProbeCurve& curve, const std::function<double(double)>& model) {
  double sum = 0;
  for (const ProbePoint& point : curve) {
    const double difference = std::log(model(static_cast<double>(point.bytes)) / point.seconds);
    sum += difference * difference;
  }
  return curve.empty() ? 0 : std::sqrt(sum / static_cast<double>(curve.size()));
}

double mean_of_short(const ProbeCurve& curve) {
  double logarithms = 0;
  int count = 0;
  for (const ProbePoint& point : curve) {
    if (point.bytes > short_bytes && count > 0) break;
    logarithms += std::log(point.seconds);
    ++count;
  }
  return count > 0 ? std::exp(logarithms / count) : 0;
}

// The slope b for which fixed + b n fits best: the relative error has one minimum over log b.
double best_slope(const ProbeCurve& curve, double fixed) {
  double low = std::log(1e-15), high = std::log(1e-3);
  const auto error = [&](double logarithm) {
    const double slope = std::exp(logarithm);
    return relative_error(curve, [&](double bytes) { return fixed + slope * bytes; });
  };
  constexpr int steps = 100;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  for (int step = 0; step < steps; ++step) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    (error(left) < error(right) ? high : low) = error(left) < error(right) ? right : left;
  }
  return std::exp((low + high) / 2);
}

struct Line {
  double fixed = 0, slope = 0;
  double at(double bytes) const { return fixed + slope * bytes; }
};

Line fit_line(const ProbeCurve& curve) {
  const double fixed = std::max(mean_of_short(curve), least_seconds);
  return {fixed, best_slope(curve, fixed)};
}

// What the bytes of the longer messages take on top, each size alone, so that the fixed part does not matter.
double slope_between(const ProbeCurve& more, const ProbeCurve& less) {
  std::vector<double> slopes;
  for (const ProbePoint& point : more) {
    if (point.bytes < long_bytes) continue;
    const auto same = [&](const ProbePoint& other) { return other.bytes == point.bytes; };
    const auto found = std::find_if(less.begin(), less.end(), same);
    if (found != less.end()) slopes.push_back((point.seconds - found->seconds) / static_cast<double>(point.bytes));
  }
  if (slopes.empty()) return 0;
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return std::max(*middle, 0.0);
}

bool shares_directions(const LinkSamples& link) {
  if (link.both_ways.empty() || link.stream.empty()) return false;
  const ProbePoint& both = link.both_ways.back();
  const auto same = [&](const ProbePoint& point) { return point.bytes == both.bytes; };
  const auto one = std::find_if(link.stream.begin(), link.stream.end(), same);
  return one != link.stream.end() && both.seconds > shares_from * one->seconds;
}

double highest(const std::vector<double>& rates) {
  return rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
}

class LinkFit {
 public:
  LinkFit(const LinkSamples& link, ProbeFit& fit)
      : link_(link), fit_(fit), one_way_(fit_line(link.one_way)), stream_(fit_line(link.stream)) {}

  LinkLevel run() {
    LinkLevel level;
    level.name = link_.level;
    level.network = link_.network;
    // A stream may be held up by more than its processors' work, as by a socket's system calls.
    level.overhead = std::min(stream_.fixed, one_way_.fixed / 4);
    level.latency = std::max(one_way_.fixed - 2 * level.overhead, least_seconds);
    if (link_.network) {
      fit_port(level);
    } else {
      level.cpu_seconds_per_byte = one_way_.slope;
    }
    for (const ChannelSamples& samples : link_.by_channel) level.channels.push_back(fit_channel(samples));
    note("one way", relative_error(link_.one_way, [&](double bytes) { return one_way_.at(bytes); }));
    note("stream", relative_error(link_.stream, [&](double bytes) { return stream_.at(bytes); }));
    return level;
  }

 private:
  // The port's rate is the highest that any number of ranks got out of it together; what a message takes beyond it is
  // its processors' work, of which the model counts both sides'.
  void fit_port(LinkLevel& level) {
    const double measured = highest(link_.bytes_per_second);
    const double rate = measured > 0 ? measured : 1 / stream_.slope;
    level.port_seconds_per_byte = 1 / rate;
    level.cpu_seconds_per_byte = std::max((one_way_.slope - level.port_seconds_per_byte) / 2, 0.0);
    if (const double messages = highest(link_.messages_per_second); messages > 0)
      level.port_seconds_per_message = 1 / messages;
    level.half_duplex = shares_directions(link_);
  }

  static ChannelLink fit_channel(const ChannelSamples& samples) {
    const Line one_way = fit_line(samples.one_way), stream = fit_line(samples.stream);
    const double overhead = std::min(stream.fixed, one_way.fixed / 4);
    return {samples.channel, std::max(one_way.fixed - 2 * overhead, least_seconds), overhead, stream.slope};
  }

  void note(const char* curve, double relative) { fit_.residuals.push_back({link_.level, curve, relative}); }

  const LinkSamples& link_;
  ProbeFit& fit_;
  Line one_way_, stream_;
};

void collect_spreads(const ProbeCurve& curve, std::vector<double>& spreads) {
  for (const ProbePoint& point : curve) spreads.push_back(point.spread);
}

}  // namespace

ProbeFit fit_machine(const ProbeSamples& samples) {
  ProbeFit fit;
  fit.machine.ranks_per_core = samples.ranks_per_core;
  for (const LinkSamples& link : samples.links) fit.machine.levels.push_back(LinkFit(link, fit).run());
  const LinkSamples& innermost = samples.links.back();
  fit.machine.reduce_seconds_per_byte = slope_between(innermost.reduced, innermost.stream);
  if (samples.copies.size() > 1) fit.machine.copy_seconds_per_byte = fit_line(samples.copies).slope;
  return fit;
}

double noise(const ProbeSamples& samples) {
  std::vector<double> spreads;
  for (const LinkSamples& link : samples.links) {
    for (const ProbeCurve* curve : {&link.one_way, &link.stream, &link.both_ways, &link.reduced})
      collect_spreads(*curve, spreads);
    for (const ChannelSamples& channel : link.by_channel)
      for (const ProbeCurve* curve : {&channel.one_way, &channel.stream}) collect_spreads(*curve, spreads);
  }
  for (const auto& [name, curve] : samples.host) collect_spreads(curve, spreads);
  if (spreads.empty()) return 0;
  const auto place = spreads.begin() + static_cast<std::ptrdiff_t>(spreads.size() * 3 / 4);
  std::nth_element(spreads.begin(), place, spreads.end());
  return *place;
}

}  // namespace plait::tuner
