#include "tuner/measure/probe_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "core/channel_kind.h"
#include "plait/plait.h"
#include "tuner/measure/collective_calls.h"
#include "tuner/measure/group_calls.h"

namespace plait::tuner {
namespace {

constexpr std::array<std::size_t, 10> sizes = {8,
                                               64,
                                               512,
                                               std::size_t{4} << 10,
                                               std::size_t{16} << 10,
                                               std::size_t{64} << 10,
                                               std::size_t{256} << 10,
                                               std::size_t{1} << 20,
                                               std::size_t{2} << 20,
                                               std::size_t{4} << 20};
constexpr std::size_t sizes_apart = 3;              // where each point takes long: 8 B, 4 KiB, 256 KiB, 4 MiB
constexpr int most_batches = 7, least_batches = 3;  // fewer where each takes long
constexpr int most_calls = 20000;
// What a sender that does not wait has sent lies in the receiver's memory.
constexpr int most_calls_ahead = 1000;
constexpr std::size_t most_bytes_ahead = std::size_t{64} << 20;
// Measured again as long as a time falls by so much: the windows of connections open with what goes through them.
constexpr double still_falls = 0.9;
constexpr int most_settling = 6;
// The port's rate: messages whose bytes take several times as long as the way there and back, where memory allows it.
constexpr double latencies_of_bytes = 4;
constexpr std::size_t most_rate_bytes = std::size_t{64} << 20, most_rate_bytes_of_node = std::size_t{512} << 20;
// A call whose bytes take longer ends its curve: larger ones would only show the same rate.
constexpr double longest_call_s = 0.03;
constexpr double longest_host_call_s = 0.1;
constexpr double shortest_batch_s = 0.001;

constexpr const char* broadcast_plan = "BC.1(binomial)";
constexpr const char* reduce_plan = "RD.1(binomial)";
constexpr const char* gather_plan = "AG.1(ring)";

constexpr std::array host_collectives = {Collective::barrier,
                                         Collective::bcast,
                                         Collective::reduce,
                                         Collective::allreduce,
                                         Collective::allgather,
                                         Collective::alltoall,
                                         Collective::reduce_scatter_block};

// What each rank does with so many bytes, once.
using Act = std::function<void(std::size_t bytes)>;

// What the ranks of a crew time.
struct Work {
  Act call;
  std::function<void()> begin = [] {};  // before a batch of calls
  // The sender does not wait for the receiver, so that many messages are under way. The receiver's clock starts when
  // the first one has arrived: the latency is no part of a message's time, however few they are.
  bool stream = false;
  bool receives = false;  // this rank does, in a stream
  int most = most_calls;
};

struct Timing {
  double per_call_s = 0, spread = 0;
};

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

bool crosses_nodes(const Level& level) { return level.kind == LevelKind::node || level.kind == LevelKind::leaf_switch; }

// Pairs of ranks that the level parts and nothing further out does: the members of the first two of its groups that
// have the same parent, first with first.
std::vector<std::pair<int, int>> pairs_across(const Hierarchy& hierarchy, std::size_t index) {
  const std::vector<int> first = hierarchy.levels()[index].group_first;
  const std::vector<int> parents =
      index == 0 ? std::vector<int>{0} : std::vector<int>(hierarchy.levels()[index - 1].group_first);
  for (std::size_t group = 0; group + 1 < first.size(); ++group) {
    if (std::find(parents.begin(), parents.end(), first[group + 1]) != parents.end()) continue;
    const int end = group + 2 < first.size() ? first[group + 2] : hierarchy.ranks();
    const int pairs = std::min(first[group + 1] - first[group], end - first[group + 1]);
    std::vector<std::pair<int, int>> found;
    for (int pair = 0; pair < pairs; ++pair)
      found.emplace_back(hierarchy.rank_at(first[group] + pair), hierarchy.rank_at(first[group + 1] + pair));
    return found;
  }
  return {};
}

class Memory {
 public:
  explicit Memory(std::size_t bytes) : data_(static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow))) {
    if (data_) std::memset(data_.get(), 1, bytes);
  }
  std::byte* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, Release> data_;
};

class Probe {
 public:
  Probe(MpiSession& session, const Hierarchy& hierarchy, const ProbeOptions& options)
      : session_(session), hierarchy_(hierarchy), options_(options), ours_(2 * sizes.back()), theirs_(sizes.back()) {}

  Result<ProbeSamples> run() {
    const std::array failed = {ours_.data() == nullptr || theirs_.data() == nullptr ? 1.0 : 0.0};
    if (session_.maxima(failed)[0] > 0) return Status(Code::unavailable, "no memory on some rank");
    plait_set_enabled(0);
    count_work();
    ProbeSamples samples;
    for (std::size_t level = 0; level < hierarchy_.levels().size(); ++level) {
      Result<LinkSamples> link = measure_link(level);
      if (!link.ok()) return link.status();
      samples.links.push_back(std::move(*link));
    }
    announce("copies");
    MpiGroup first = MpiGroup::split(session_.rank() == hierarchy_.rank_at(0) ? 0 : -1);
    samples.copies = curve(first, {.call = [&](std::size_t n) { std::memcpy(theirs_.data(), ours_.data(), n); }});
    measure_host(samples);
    return samples;
  }

 private:
  // ---- Progress ----

  void count_work() {
    steps_ = 1 + static_cast<int>(host_collectives.size());
    for (std::size_t level = 0; level < hierarchy_.levels().size(); ++level)
      steps_ += 4 + 2 * static_cast<int>(channels_alone(hierarchy_.levels()[level]).size()) +
                (crosses_nodes(hierarchy_.levels()[level]) ? static_cast<int>(most_pairs(level)) : 0);
    const double points = static_cast<double>(steps_ * static_cast<int>(sizes.size()));
    point_s_ = options_.seconds / points;
    batch_s_ = std::max(point_s_ / (2 * most_batches), shortest_batch_s);
  }
  void announce(const std::string& what) {
    if (session_.rank() == 0) options_.progress(what, static_cast<double>(done_) / steps_);
    ++done_;
  }

  // ---- Times ----

  // The largest of the crew's.
  static double agreed(MpiGroup& crew, double seconds) {
    crew.maxima({&seconds, 1});
    return seconds;
  }

  // Seconds a call, as this rank sees it. Precondition: two calls or more of a stream.
  double batch(int calls, const Work& work, std::size_t bytes) {
    plait_set_enabled(accelerated_ ? 1 : 0);
    work.begin();
    const double begin_s = session_.wall_seconds();
    work.call(bytes);
    const double first_s = work.stream ? session_.wall_seconds() : begin_s;
    for (int call = 1; call < calls; ++call) work.call(bytes);
    const double end_s = session_.wall_seconds();
    channels_ = plait_last_channels();
    plait_set_enabled(0);
    return work.stream && work.receives ? (end_s - first_s) / (calls - 1) : (end_s - begin_s) / calls;
  }

  // As many calls as a batch needs to be timed; of a stream as many as make the time of each stop falling.
  Timing time(MpiGroup& crew, const Work& work, std::size_t bytes) {
    const int least = work.stream ? 2 : 1;
    const auto fit_ahead = static_cast<int>(std::min<std::size_t>(most_bytes_ahead / bytes, most_calls_ahead));
    const int most = work.stream ? std::clamp(fit_ahead, least, work.most) : work.most;
    int calls = least;
    batch(calls, work, bytes);  // Plait plans in it
    double call_s = agreed(crew, batch(calls, work, bytes));
    for (bool falls = work.stream; calls < most && call_s * calls < (falls ? batch_s_ : batch_s_ / 4);) {
      calls = std::min(calls * 4, most);
      const double before_s = std::exchange(call_s, agreed(crew, batch(calls, work, bytes)));
      falls = work.stream && call_s < still_falls * before_s;
    }
    calls = static_cast<int>(std::clamp<double>(batch_s_ / call_s, least, most));
    for (int again = 0; again < most_settling; ++again) {
      const double before_s = std::exchange(call_s, agreed(crew, batch(calls, work, bytes)));
      if (call_s > still_falls * before_s) break;
    }
    const int repeats = static_cast<int>(std::clamp<double>(point_s_ / (call_s * calls), least_batches, most_batches));
    std::vector<double> times;
    for (int repeat = 0; repeat < repeats; ++repeat) times.push_back(batch(calls, work, bytes));
    crew.maxima(times);
    const double median = quantile(times, 0.5);
    return {median, (quantile(times, 0.75) - quantile(times, 0.25)) / median};
  }

  // Those of a crew; nothing elsewhere. `longest_s`: of the bytes of one call.
  ProbeCurve points(MpiGroup& crew, const Work& work, double longest_s) {
    ProbeCurve found;
    std::size_t apart = 1;
    for (std::size_t index = 0; crew.member() && index < sizes.size(); index += apart) {
      const Timing timing = time(crew, work, sizes[index]);
      found.push_back({sizes[index], timing.per_call_s, timing.spread});
      const double waiting_s = std::max(found.front().seconds, 2 * latency_s_);
      if (timing.per_call_s > longest_s + 2 * waiting_s) break;
      if (takes_long(waiting_s)) apart = sizes_apart;
    }
    return found;
  }

  // So that a point cannot be had in the time that is meant for it.
  bool takes_long(double call_s) const { return 2 * least_batches * call_s > point_s_; }

  // The crew's, on all ranks; those that are not in it sleep meanwhile.
  ProbeCurve curve(MpiGroup& crew, const Work& work) {
    const ProbeCurve mine = points(crew, work, longest_call_s);
    meet_quietly();
    return known_to_all(session_, mine, sizes.size());
  }

  // ---- Links ----

  std::size_t most_pairs(std::size_t level) const { return pairs_across(hierarchy_, level).size(); }

  // The rank's pair of the first `count`, or -1.
  int pair_of(const std::vector<std::pair<int, int>>& pairs, std::size_t count) const {
    for (std::size_t pair = 0; pair < std::min(count, pairs.size()); ++pair)
      if (session_.rank() == pairs[pair].first || session_.rank() == pairs[pair].second) return static_cast<int>(pair);
    return -1;
  }

  // A group of two for each pair, which takes the plans that are measured.
  Result<MpiGroup> connect(int pair, const char* plan, const std::string& channels = {}) {
    MpiGroup group = MpiGroup::split(pair);
    if (!channels.empty())
      if (Status taken = take_channels(group, channels); !taken.ok()) return taken;
    if (Status taken = take_plan(group, plan); !taken.ok()) return taken;
    return group;
  }

  Result<LinkSamples> measure_link(std::size_t index) {
    const Level& level = hierarchy_.levels()[index];
    const auto pairs = pairs_across(hierarchy_, index);
    LinkSamples link;
    link.level = name(level.kind);
    link.network = crosses_nodes(level);
    accelerated_ = true;
    latency_s_ = 0;
    const Status measured = measure_one_pair(pairs, link);
    const Status shared = measured.ok() && link.network ? measure_shared_port(pairs, link) : measured;
    for (const std::string& channel : channels_alone(level)) measure_channel(pairs, channel, link);
    accelerated_ = false;
    latency_s_ = 0;
    if (!shared.ok()) return shared;
    return link;
  }

  Status measure_one_pair(const std::vector<std::pair<int, int>>& pairs, LinkSamples& link) {
    const int pair = pair_of(pairs, 1);
    Result<MpiGroup> group = connect(pair, broadcast_plan);
    if (!group.ok()) return group.status();
    announce(link.level + ": one way");
    link.one_way = one_way(*group);
    latency_s_ = link.one_way.front().seconds;
    note_channels(pair == 0, link);
    announce(link.level + ": stream");
    link.stream = curve(*group, stream_of(*group));
    if (Status taken = take_plan(*group, reduce_plan); !taken.ok()) return taken;
    announce(link.level + ": reduced");
    link.reduced = curve(*group, {.call = [&](std::size_t n) { group->reduce(ours_.data(), theirs_.data(), n, 0); },
                                  .begin = [&] { group->barrier(); },
                                  .stream = true,
                                  .receives = group->rank() == 0});
    if (Status taken = take_plan(*group, gather_plan); !taken.ok()) return taken;
    announce(link.level + ": both ways");
    link.both_ways = curve(*group, {.call = [&](std::size_t n) { group->all_gather(theirs_.data(), ours_.data(), n); },
                                    .begin = [&] { group->barrier(); }});
    return {};
  }

  // Those that can connect two ranks of the level by themselves.
  std::vector<std::string> channels_alone(const Level& level) const {
    std::vector<std::string> channels;
    for (const std::string& channel : options_.channels) {
      const std::optional<ChannelKind> kind = channel_named(channel);
      if (kind && traits(*kind).messages && traits(*kind).any_length &&
          (traits(*kind).crosses_nodes || !crosses_nodes(level)))
        channels.push_back(channel);
    }
    return channels;
  }

  // Nothing where the channel cannot connect them.
  void measure_channel(const std::vector<std::pair<int, int>>& pairs, const std::string& channel, LinkSamples& link) {
    const int pair = pair_of(pairs, 1);
    announce(link.level + " over " + channel + ": one way");
    Result<MpiGroup> group = connect(pair, broadcast_plan, channel);
    if (!group.ok()) return;
    ChannelSamples samples{.channel = channel, .one_way = one_way(*group), .stream = {}};
    announce(link.level + " over " + channel + ": stream");
    samples.stream = curve(*group, stream_of(*group));
    link.by_channel.push_back(std::move(samples));
  }

  ProbeCurve one_way(MpiGroup& group) {
    ProbeCurve points = curve(group, {.call =
                                          [&](std::size_t n) {
                                            group.broadcast(ours_.data(), n, 0);
                                            group.broadcast(theirs_.data(), n, 1);
                                          },
                                      .begin = [&] { group.barrier(); }});
    for (ProbePoint& point : points) point.seconds /= 2;
    return points;
  }

  Work stream_of(MpiGroup& group) {
    return {.call = [&](std::size_t n) { group.broadcast(sent(), n, 0); },
            .begin = [&] { group.barrier(); },
            .stream = true,
            .receives = group.rank() == 1,
            .most = most_calls_ahead};
  }

  Status take_plan(MpiGroup& group, const char* plan) {
    Status taken;
    if (group.member()) {
      plait_set_enabled(1);
      taken = group.take_plan(plan);
      plait_set_enabled(0);
    }
    return of_all(taken);
  }

  Status take_channels(MpiGroup& group, const std::string& channels) {
    return of_all(group.member() ? group.take_channels(channels) : Status());
  }

  // The same on all ranks; members may have taken long.
  Status of_all(const Status& taken) {
    meet_quietly();
    const std::array failed = {taken.ok() ? 0.0 : 1.0};
    if (session_.maxima(failed)[0] > 0) return {Code::unavailable, "Plait cannot be used between some ranks"};
    return {};
  }

  // One, two, .. ranks of the same node send at once.
  Status measure_shared_port(const std::vector<std::pair<int, int>>& pairs, LinkSamples& link) {
    const std::size_t longest = std::min(most_rate_bytes, most_rate_bytes_of_node / pairs.size());
    for (std::size_t count = 1; count <= pairs.size(); ++count) {
      announce(link.level + ": " + std::to_string(count) + " at once");
      const int pair = pair_of(pairs, count);
      Result<MpiGroup> group = connect(pair, broadcast_plan);
      if (!group.ok()) return group.status();
      MpiGroup crew = MpiGroup::split(pair >= 0 ? 0 : -1);
      std::array<double, 2> rates = {0, 0};
      if (crew.member()) {
        const Work work = stream_of(*group);
        rates[0] = 1 / time(crew, work, sizes.front()).per_call_s;
        rates[1] = rate_of_bytes(crew, work, link.stream.back().bytes, std::max(longest, sizes.back()));
      }
      meet_quietly();
      const std::vector<double> all = session_.maxima(rates);
      link.messages_per_second.push_back(static_cast<double>(count) * all[0]);
      link.bytes_per_second.push_back(static_cast<double>(count) * all[1]);
    }
    return {};
  }

  // Of each of the crew's senders: what the bytes of a long message take beyond those of a shorter one, so that neither
  // the way nor what a sender waits for is part of it.
  double rate_of_bytes(MpiGroup& crew, const Work& work, std::size_t bytes, std::size_t longest) {
    while (2 * bytes <= longest && agreed(crew, batch(2, work, bytes)) < latencies_of_bytes * latency_s_ &&
           can_send(crew, 2 * bytes, longest))
      bytes *= 2;
    const double long_s = time(crew, work, bytes).per_call_s, short_s = time(crew, work, bytes / 4).per_call_s;
    long_messages_.reset();
    const auto all = static_cast<double>(bytes), more = all - static_cast<double>(bytes / 4);
    return short_s < long_s ? more / (long_s - short_s) : all / long_s;
  }

  // Agreed.
  bool can_send(MpiGroup& crew, std::size_t bytes, std::size_t longest) {
    if (bytes <= 2 * sizes.back() || long_messages_) return true;
    long_messages_.emplace(longest);
    if (agreed(crew, sent() == nullptr ? 1 : 0) == 0) return true;
    long_messages_.reset();
    return false;
  }

  std::byte* sent() const { return long_messages_ ? long_messages_->data() : ours_.data(); }

  // Of the last call of those who took part; known on rank 0.
  void note_channels(bool active, LinkSamples& link) {
    for (const std::string& channels : session_.gather_text_at_root(active ? channels_ : ""))
      if (link.channels.empty()) link.channels = channels;
  }

  // ---- The host ----

  void measure_host(ProbeSamples& samples) {
    MpiGroup everybody = MpiGroup::split(0);
    for (const Collective collective : host_collectives) {
      const std::string label(name(collective));
      announce("host: " + label);
      ProbeCurve& points = samples.host[label];
      std::size_t apart = 1;
      for (std::size_t index = 0; index < sizes.size(); index += apart) {
        const auto bytes = measurable_bytes(collective, sizes[index], session_.ranks());
        if (!bytes.ok() || (!points.empty() && points.back().bytes == *bytes)) break;
        const Timing timing = time_host(everybody, {.collective = collective, .bytes = *bytes});
        if (timing.per_call_s == 0) break;
        points.push_back({*bytes, timing.per_call_s, timing.spread});
        if (timing.per_call_s > longest_host_call_s + 2 * points.front().seconds) break;
        if (takes_long(timing.per_call_s)) apart = sizes_apart;
      }
    }
  }

  // 0 seconds: no memory.
  Timing time_host(MpiGroup& everybody, const CallSpec& spec) {
    auto call = CollectiveCall::make(spec, session_.rank(), session_.ranks());
    const std::array failed = {call.ok() ? 0.0 : 1.0};
    if (session_.maxima(failed)[0] > 0) return {};
    call->prepare(1);
    const Work work{.call = [&](std::size_t) { call->run(); },
                    .begin = [&] { session_.barrier(); },
                    .most = rooted(spec.collective) ? most_calls_ahead : most_calls};
    return time(everybody, work, std::max<std::size_t>(spec.bytes, 1));
  }

  MpiSession& session_;
  const Hierarchy& hierarchy_;
  const ProbeOptions& options_;
  Memory ours_, theirs_;
  std::optional<Memory> long_messages_;  // in place of ours_
  bool accelerated_ = false;
  std::string channels_;  // of this rank's last call
  int steps_ = 1, done_ = 0;
  double point_s_ = 0;  // what one point of a curve may take, about
  double batch_s_ = shortest_batch_s;
  double latency_s_ = 0;  // of a short message over the link that is measured
};

}  // namespace

ProbeCurve known_to_all(MpiSession& session, const ProbeCurve& mine, std::size_t points) {
  std::vector<double> figures(3 * points);
  for (std::size_t point = 0; point < mine.size(); ++point) {
    figures[3 * point] = static_cast<double>(mine[point].bytes);
    figures[3 * point + 1] = mine[point].seconds;
    figures[3 * point + 2] = mine[point].spread;
  }
  const std::vector<double> all = session.maxima(figures);
  ProbeCurve curve;
  for (std::size_t point = 0; point < all.size() && all[point] > 0; point += 3)
    curve.push_back({static_cast<std::size_t>(all[point]), all[point + 1], all[point + 2]});
  return curve;
}

Result<ProbeSamples> take_samples(MpiSession& session, const Hierarchy& hierarchy, const ProbeOptions& options) {
  return Probe(session, hierarchy, options).run();
}

}  // namespace plait::tuner
