#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <span>
#include <string>

#include "core/units.h"
#include "tuner/measure/probe_samples.h"

namespace plait::tuner {
namespace {

// Shorter messages tell how long a message takes whatever its length, longer ones what its bytes take.
constexpr std::size_t short_bytes = 256, long_bytes = 4096;
// From here on all messages of a stream go the same way: a sender may wait for each to arrive, and the receiver's
// memory bounds how much is under way.
constexpr std::size_t waited_for_bytes = 256 * 1024;
// Both directions at once take this much longer than one where they share the link's rate; twice as long would be all
// of it.
constexpr double shares_from = 1.6;
constexpr double least_latency = 1e-9;
// A stream's short message that takes a quarter of one way or more was waited for rather than worked on, where the way
// is longer than any work on a message is.
constexpr double most_overhead = 0.25;
constexpr double long_way_s = 500e-6;
// What the kernel lets a connection have under way where nobody has set it otherwise, about.
constexpr double full_window_bytes = 1.5e6;

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
  const double fixed = std::max(mean_of_short(curve), least_latency);
  return {fixed, best_slope(curve, fixed)};
}

// Both figures at once: the least sum of squares of relative differences.
Line free_line(std::span<const ProbePoint> points) {
  double ones = 0, first = 0, squares = 0, seconds = 0, products = 0;
  for (const ProbePoint& point : points) {
    const double weight = 1 / (point.seconds * point.seconds), bytes = static_cast<double>(point.bytes);
    ones += weight;
    first += weight * bytes;
    squares += weight * bytes * bytes;
    seconds += weight * point.seconds;
    products += weight * bytes * point.seconds;
  }
  const double determinant = ones * squares - first * first;
  const Line line{(seconds * squares - products * first) / determinant,
                  (ones * products - first * seconds) / determinant};
  if (line.fixed >= 0 && line.slope > 0) return line;
  return {0, products / squares};
}

// Of the messages of a stream: short ones follow one another, before each long one the sender may wait for the last to
// arrive.
struct StreamLine {
  Line first, waited_for;

  double at(double bytes) const {
    return bytes < static_cast<double>(waited_for_bytes) ? first.at(bytes) : waited_for.at(bytes);
  }
};

StreamLine fit_stream(const ProbeCurve& curve) {
  const auto from =
      std::find_if(curve.begin(), curve.end(), [](const ProbePoint& point) { return point.bytes >= waited_for_bytes; });
  const std::span<const ProbePoint> longer(from, curve.end());
  const Line first = fit_line(from - curve.begin() < 2 ? curve : ProbeCurve(curve.begin(), from));
  return {first, longer.size() < 2 ? first : free_line(longer)};
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

// What a byte of the longest message takes beyond those of one a quarter as long or less: what is the same for both
// does not count.
double slope_of_longest(const ProbeCurve& curve, std::size_t bytes) {
  const auto last =
      std::find_if(curve.begin(), curve.end(), [&](const ProbePoint& point) { return point.bytes == bytes; });
  const auto shorter = std::find_if(std::make_reverse_iterator(last), curve.rend(),
                                    [&](const ProbePoint& point) { return point.bytes <= bytes / 4; });
  if (last == curve.end() || shorter == curve.rend()) return 0;
  return (last->seconds - shorter->seconds) / static_cast<double>(last->bytes - shorter->bytes);
}

bool shares_directions(const LinkSamples& link) {
  if (link.both_ways.empty() || link.stream.empty()) return false;
  const std::size_t bytes = std::min(link.both_ways.back().bytes, link.stream.back().bytes);
  const double one = slope_of_longest(link.stream, bytes);
  return one > 0 && slope_of_longest(link.both_ways, bytes) > shares_from * one;
}

double highest(const std::vector<double>& rates) {
  return rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
}

class LinkFit {
 public:
  LinkFit(const LinkSamples& link, ProbeFit& fit)
      : link_(link), fit_(fit), one_way_(fit_line(link.one_way)), stream_(fit_stream(link.stream)) {}

  LinkLevel run() {
    LinkLevel level;
    level.name = link_.level;
    level.network = link_.network;
    // A stream may be held up by more than its processors' work, as by a socket's system calls.
    level.overhead = std::min(stream_.first.fixed, one_way_.fixed * most_overhead);
    level.latency = std::max(one_way_.fixed - 2 * level.overhead, least_latency);
    if (link_.network) {
      fit_port(level);
    } else {
      level.cpu_seconds_per_byte = one_way_.slope;
    }
    for (const ChannelSamples& samples : link_.by_channel) fit_channel(samples, level);
    note("one way", relative_error(link_.one_way, [&](double bytes) { return one_way_.at(bytes); }));
    note("stream", relative_error(link_.stream, [&](double bytes) { return stream_.at(bytes); }));
    if (waits_for_each(one_way_, stream_))
      fit_.doubt = waiting_text(link_.level, one_way_, stream_) + ": its overhead cannot be told from the latency";
    return level;
  }

 private:
  // The port's rate is the highest that any number of ranks got out of it together; what a message takes beyond it is
  // its processors' work, of which the model counts both sides', and which one rank's stream cannot exceed either.
  void fit_port(LinkLevel& level) {
    const double measured = highest(link_.bytes_per_second);
    const double alone = link_.bytes_per_second.empty() ? stream_.waited_for.slope : 1 / link_.bytes_per_second.front();
    level.port_seconds_per_byte = measured > 0 ? 1 / measured : alone;
    level.cpu_seconds_per_byte = std::clamp((one_way_.slope - level.port_seconds_per_byte) / 2, 0.0, alone);
    if (const double messages = highest(link_.messages_per_second); messages > 0)
      level.port_seconds_per_message = 1 / messages;
    note_window(level);
    level.half_duplex = shares_directions(link_);
  }

  void fit_channel(const ChannelSamples& samples, LinkLevel& level) {
    const Line one_way = fit_line(samples.one_way);
    const StreamLine stream = fit_stream(samples.stream);
    if (waits_for_each(one_way, stream)) {
      fit_.remarks.push_back(waiting_text(link_.level + " over " + samples.channel + " alone", one_way, stream) +
                             ": left out");
      return;
    }
    const double overhead = std::min(stream.first.fixed, one_way.fixed * most_overhead);
    level.channels.push_back(
        {samples.channel, std::max(one_way.fixed - 2 * overhead, least_latency), overhead, stream.waited_for.slope});
  }

  static bool waits_for_each(const Line& one_way, const StreamLine& stream) {
    return one_way.fixed > long_way_s && stream.first.fixed > one_way.fixed * most_overhead;
  }

  static std::string waiting_text(const std::string& link, const Line& one_way, const StreamLine& stream) {
    return link + ": of many short messages each takes " + format_seconds(stream.first.fixed) + ", the way " +
           format_seconds(one_way.fixed);
  }

  // What one connection has under way is bounded by its sockets' buffers, so that over a long way these set the rate.
  void note_window(const LinkLevel& level) {
    if (one_way_.fixed < long_way_s || link_.bytes_per_second.empty()) return;
    const double window = link_.bytes_per_second.front() * 2 * one_way_.fixed;
    if (window < full_window_bytes) return;
    fit_.remarks.push_back(
        level.name + ": one rank has " + format_bytes(static_cast<std::size_t>(window) >> 10 << 10) +
        " under way: its sockets' buffers (net.ipv4.tcp_wmem, tcp_rmem) may set the rate, not the port");
  }

  void note(const char* curve, double relative) { fit_.residuals.push_back({link_.level, curve, relative}); }

  const LinkSamples& link_;
  ProbeFit& fit_;
  Line one_way_;
  StreamLine stream_;
};

// Copies of a device; not known where there are none.
DeviceLink fit_device(const std::string& level, const char* curve, const ProbeCurve& copies, ProbeFit& fit) {
  if (copies.size() < 2) return {};
  const Line line = fit_line(copies);
  fit.residuals.push_back({level, curve, relative_error(copies, [&](double bytes) { return line.at(bytes); })});
  return {.latency = line.fixed, .seconds_per_byte = line.slope};
}

void collect_spreads(const ProbeCurve& curve, std::vector<double>& spreads) {
  for (const ProbePoint& point : curve) spreads.push_back(point.spread);
}

}  // namespace

ProbeFit fit_machine(const ProbeSamples& samples) {
  ProbeFit fit;
  fit.machine.ranks_per_core = samples.ranks_per_core;
  for (const LinkSamples& link : samples.links) {
    fit.machine.levels.push_back(LinkFit(link, fit).run());
    fit.machine.levels.back().devices = fit_device(link.level, "between devices", link.devices, fit);
  }
  fit.machine.to_device = fit_device("devices", "to them", samples.to_device, fit);
  fit.machine.from_device = fit_device("devices", "from them", samples.from_device, fit);
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
