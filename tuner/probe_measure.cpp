#include "tuner/probe_measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "plait/plait.h"
#include "tl/mpi/collective_calls.h"
#include "tl/mpi/group_calls.h"

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
constexpr int batches = 7;
constexpr int most_calls = 20000;
constexpr int most_calls_ahead = 1000;  // what a sender that does not wait has sent lies in the receiver's memory
// A call that takes longer ends its curve: larger ones would only show the same rate.
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
  const std::vector<int>& first = hierarchy.levels()[index].group_first;
  const auto parents = index == 0 ? std::vector<int>{0} : hierarchy.levels()[index - 1].group_first;
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
    const bool first = session_.rank() == hierarchy_.rank_at(0);
    samples.copies = curve(first, most_calls, [&](std::size_t n) { std::memcpy(theirs_.data(), ours_.data(), n); });
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
    batch_s_ = std::max(options_.seconds / points / (2 * batches), shortest_batch_s);
  }
  void announce(const std::string& what) {
    if (session_.rank() == 0) options_.progress(what, static_cast<double>(done_) / steps_);
    ++done_;
  }

  // ---- Times ----

  // Those for whom `active` is true run `act` so many times; the others sleep meanwhile. Agreed: the slowest one's.
  double batch(bool active, int calls, const std::function<void()>& begin, const Act& act, std::size_t bytes) {
    double elapsed_s = 0;
    if (active) {
      plait_set_enabled(accelerated_ ? 1 : 0);
      begin();
      const double begin_s = session_.wall_seconds();
      for (int call = 0; call < calls; ++call) act(bytes);
      elapsed_s = session_.wall_seconds() - begin_s;
      channels_ = plait_last_channels();
      plait_set_enabled(0);
    }
    meet_quietly();
    const std::array mine = {elapsed_s};
    return session_.maxima(mine)[0];
  }

  Timing time(bool active, int most, const std::function<void()>& begin, const Act& act, std::size_t bytes) {
    batch(active, 1, begin, act, bytes);  // Plait plans in it
    int calls = 1;
    double took_s = batch(active, calls, begin, act, bytes);
    while (took_s < batch_s_ / 4 && calls < most) {
      calls = std::min(calls * 4, most);
      took_s = batch(active, calls, begin, act, bytes);
    }
    calls = std::clamp(static_cast<int>(calls * batch_s_ / took_s), 1, most);
    std::vector<double> times;
    for (int repeat = 0; repeat < batches; ++repeat) times.push_back(batch(active, calls, begin, act, bytes) / calls);
    const double median = quantile(times, 0.5);
    return {median, (quantile(times, 0.75) - quantile(times, 0.25)) / median};
  }

  ProbeCurve curve(
      bool active, int most, const Act& act, const std::function<void()>& begin = [] {},
      double longest_s = longest_call_s) {
    ProbeCurve points;
    for (const std::size_t bytes : sizes) {
      const Timing timing = time(active, most, begin, act, bytes);
      points.push_back({bytes, timing.per_call_s, timing.spread});
      if (timing.per_call_s > longest_s) break;
    }
    return points;
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
    const Status measured = measure_one_pair(pairs, link);
    const Status shared = measured.ok() && link.network ? measure_shared_port(pairs, link) : measured;
    for (const std::string& channel : channels_alone(level)) measure_channel(pairs, channel, link);
    accelerated_ = false;
    if (!shared.ok()) return shared;
    return link;
  }

  Status measure_one_pair(const std::vector<std::pair<int, int>>& pairs, LinkSamples& link) {
    const int pair = pair_of(pairs, 1);
    Result<MpiGroup> group = connect(pair, broadcast_plan);
    if (!group.ok()) return group.status();
    const auto begin = [&] { group->barrier(); };
    announce(link.level + ": one way");
    link.one_way = one_way(*group, pair == 0);
    note_channels(pair == 0, link);
    announce(link.level + ": stream");
    link.stream = stream(*group, pair == 0);
    if (Status taken = take_plan(*group, reduce_plan); !taken.ok()) return taken;
    announce(link.level + ": reduced");
    link.reduced = curve(
        pair == 0, most_calls_ahead, [&](std::size_t n) { group->reduce(ours_.data(), theirs_.data(), n, 0); }, begin);
    if (Status taken = take_plan(*group, gather_plan); !taken.ok()) return taken;
    announce(link.level + ": both ways");
    link.both_ways = curve(
        pair == 0, most_calls, [&](std::size_t n) { group->all_gather(theirs_.data(), ours_.data(), n); }, begin);
    return {};
  }

  // Those that can connect two ranks of the level by themselves; tcp carries only short messages of what ucx connects.
  std::vector<std::string> channels_alone(const Level& level) const {
    std::vector<std::string> channels;
    for (const std::string& channel : options_.channels)
      if (channel != "tcp" && (channel != "shm" || !crosses_nodes(level))) channels.push_back(channel);
    return channels;
  }

  // Nothing where the channel cannot connect them.
  void measure_channel(const std::vector<std::pair<int, int>>& pairs, const std::string& channel, LinkSamples& link) {
    const int pair = pair_of(pairs, 1);
    announce(link.level + " over " + channel + ": one way");
    Result<MpiGroup> group = connect(pair, broadcast_plan, channel);
    if (!group.ok()) return;
    ChannelSamples samples{.channel = channel, .one_way = one_way(*group, pair == 0), .stream = {}};
    announce(link.level + " over " + channel + ": stream");
    samples.stream = stream(*group, pair == 0);
    link.by_channel.push_back(std::move(samples));
  }

  ProbeCurve one_way(MpiGroup& group, bool active) {
    ProbeCurve points = curve(
        active, most_calls,
        [&](std::size_t n) {
          group.broadcast(ours_.data(), n, 0);
          group.broadcast(theirs_.data(), n, 1);
        },
        [&] { group.barrier(); });
    for (ProbePoint& point : points) point.seconds /= 2;
    return points;
  }

  // The receivers' end of a stream is the end of all its messages.
  ProbeCurve stream(MpiGroup& group, bool active) {
    return curve(
        active, most_calls_ahead, [&](std::size_t n) { group.broadcast(ours_.data(), n, 0); },
        [&] { group.barrier(); });
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
    const std::size_t largest = link.stream.back().bytes;
    for (std::size_t count = 1; count <= pairs.size(); ++count) {
      announce(link.level + ": " + std::to_string(count) + " at once");
      const int pair = pair_of(pairs, count);
      Result<MpiGroup> group = connect(pair, broadcast_plan);
      if (!group.ok()) return group.status();
      const auto begin = [&] { group->barrier(); };
      const Act send = [&](std::size_t n) { group->broadcast(ours_.data(), n, 0); };
      const double message_s = time(pair >= 0, most_calls_ahead, begin, send, sizes.front()).per_call_s;
      const double bytes_s = time(pair >= 0, most_calls_ahead, begin, send, largest).per_call_s;
      link.messages_per_second.push_back(static_cast<double>(count) / message_s);
      link.bytes_per_second.push_back(static_cast<double>(count * largest) / bytes_s);
    }
    return {};
  }

  // Of the last call of those who took part; known on rank 0.
  void note_channels(bool active, LinkSamples& link) {
    for (const std::string& channels : session_.gather_text_at_root(active ? channels_ : ""))
      if (link.channels.empty()) link.channels = channels;
  }

  // ---- The host ----

  void measure_host(ProbeSamples& samples) {
    for (const Collective collective : host_collectives) {
      const std::string label(name(collective));
      announce("host: " + label);
      ProbeCurve& points = samples.host[label];
      for (const std::size_t wanted : sizes) {
        const auto bytes = measurable_bytes(collective, wanted, session_.ranks());
        if (!bytes.ok() || (!points.empty() && points.back().bytes == *bytes)) break;
        const Timing timing = time_host({.collective = collective, .bytes = *bytes});
        if (timing.per_call_s == 0) break;
        points.push_back({*bytes, timing.per_call_s, timing.spread});
        if (timing.per_call_s > longest_host_call_s) break;
      }
    }
  }

  // 0 seconds: no memory.
  Timing time_host(const CallSpec& spec) {
    auto call = CollectiveCall::make(spec, session_.rank(), session_.ranks());
    const std::array failed = {call.ok() ? 0.0 : 1.0};
    if (session_.maxima(failed)[0] > 0) return {};
    call->prepare(1);
    const int most = rooted(spec.collective) ? most_calls_ahead : most_calls;
    return time(
        true, most, [&] { session_.barrier(); }, [&](std::size_t) { call->run(); }, spec.bytes);
  }

  MpiSession& session_;
  const Hierarchy& hierarchy_;
  const ProbeOptions& options_;
  Memory ours_, theirs_;
  bool accelerated_ = false;
  std::string channels_;  // of this rank's last call
  int steps_ = 1, done_ = 0;
  double batch_s_ = shortest_batch_s;
};

}  // namespace

Result<ProbeSamples> take_samples(MpiSession& session, const Hierarchy& hierarchy, const ProbeOptions& options) {
  return Probe(session, hierarchy, options).run();
}

}  // namespace plait::tuner
