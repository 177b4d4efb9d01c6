#include "tuner/simgrid/flow_play.h"

#include <algorithm>
#include <limits>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u/Actor.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Link.hpp>
#include <unordered_map>
#include <utility>

#include "tuner/simgrid/connections.h"
#include "tuner/simgrid/network_flow.h"
#include "tuner/simgrid/schedule_progress.h"

namespace plait::tuner {
namespace {

namespace sg = simgrid;

// SMPI's envelope.
constexpr std::uint64_t envelope_bytes = 16;

template <class Event>
void at(double date, Event event) {
  sg::kernel::timer::Timer::set(date, std::move(event));
}

// Of one sender, receiver and tag.
struct Message {
  bool sent = false, awaited = false, arrived = false;
  std::uint64_t bytes = 0;
  Work of_sender, of_receiver;
  bool eager() const { return bytes < long_bytes; }
};
struct MessageKey {
  int from = 0, to = 0, tag = 0;
  bool operator==(const MessageKey&) const = default;
};
struct MessageHash {
  std::size_t operator()(const MessageKey& key) const {
    constexpr std::uint64_t mix = 0x9e3779b97f4a7c15;
    std::uint64_t hash = static_cast<std::uint64_t>(key.from) * mix;
    hash = (hash ^ (hash >> 29) ^ static_cast<std::uint64_t>(key.to)) * mix;
    hash = (hash ^ (hash >> 29) ^ static_cast<std::uint64_t>(key.tag)) * mix;
    return hash ^ (hash >> 32);
  }
};

// A message that is done with on one side, and what taking it costs there.
struct Done {
  Work work;
  double cost_s = 0;
};

struct FlowRank {
  ScheduleProgress progress;
  std::size_t next_post = 0, next_done = 0;
  std::vector<Done> done = {};
  bool busy = false;   // its processor, with a message
  double idle_at = 0;  // since when it had nothing to do
};

// Within a node.
struct Loopback {
  bool unshared = false;
  double latency_s = 0, bytes_per_s = 0;
};

Loopback loopback_of(const sg::s4u::Host* host) {
  std::vector<sg::s4u::Link*> links;
  Loopback found;
  host->route_to(host, links, &found.latency_s);
  found.unshared = links.size() == 1 && links[0]->get_sharing_policy() == sg::s4u::Link::SharingPolicy::FATPIPE;
  if (found.unshared) found.bytes_per_s = links[0]->get_bandwidth();
  return found;
}

// What is on the way between two nodes while it is full.
std::uint64_t bytes_on_the_way(const sg::s4u::Host* from, const sg::s4u::Host* to) {
  std::vector<sg::s4u::Link*> links;
  double latency_s = 0, narrowest = std::numeric_limits<double>::infinity();
  from->route_to(to, links, &latency_s);
  for (const sg::s4u::Link* link : links) narrowest = std::min(narrowest, link->get_bandwidth());
  return links.empty() ? 0 : static_cast<std::uint64_t>(latency_s * narrowest);
}

class FlowPlay;
FlowPlay* current_play = nullptr;  // SimGrid's callbacks stay for ever

class FlowPlay {
 public:
  FlowPlay(const FlowJob& job, const std::vector<plan::BoundSchedule>& schedules, GlobalCrossings& crossings)
      : job_(job), loopback_(loopback_of(job.hosts.front())), crossings_(crossings) {
    ranks_.reserve(schedules.size());
    for (const plan::BoundSchedule& schedule : schedules) ranks_.push_back({.progress = ScheduleProgress(schedule)});
  }

  Result<Played> play(double silence_s) {
    const double begin = sg::s4u::Engine::get_clock();
    at(begin, [this] {
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
        of(rank).progress.begin();
        go_on(rank);
      }
    });
    sg::s4u::this_actor::sleep_for(silence_s);
    double end = begin;
    for (const FlowRank& rank : ranks_) {
      if (Status status = rank.progress.outcome(); !status.ok()) return status;
      end = std::max(end, rank.idle_at);
    }
    return Played{end - begin, global_bytes_};
  }

  // SimGrid is in the middle of its update: what follows from it has to wait for the end of that.
  void landed(FlowId flow) {
    const auto found = flying_.find(flow);
    if (found == flying_.end()) return;
    landed_.push_back(std::move(found->second));
    flying_.erase(found);
    if (landed_.size() == 1) at(sg::s4u::Engine::get_clock(), [this] { take_landed(); });
  }

 private:
  struct Flight {
    NetworkFlow flow;
    MessageKey key;
    std::uint64_t bytes = 0;  // of the message
  };

  struct Leaving {
    MessageKey key;
    std::uint64_t bytes = 0;
  };

  FlowRank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  double cost_s(int one, int other) const {
    return job_.hosts[static_cast<std::size_t>(one)] == job_.hosts[static_cast<std::size_t>(other)] ? job_.near_s
                                                                                                    : job_.far_s;
  }

  // As a rank's actor would: it posts what it has to post, then takes a message that is done, until it has to wait.
  void go_on(int number) {
    FlowRank& rank = of(number);
    while (!rank.busy) {
      if (take_post(number) || take_done(number)) continue;
      rank.idle_at = sg::s4u::Engine::get_clock();
      return;
    }
  }

  bool take_post(int number) {
    FlowRank& rank = of(number);
    std::vector<Post>& posts = rank.progress.posts();
    if (rank.next_post == posts.size()) {
      posts.clear();
      rank.next_post = 0;
      return false;
    }
    const Post post = posts[rank.next_post++];
    if (post.sends)
      occupy(number, cost_s(number, post.peer), [this, number, post] { send(number, post); });
    else
      receive(number, post);
    return true;
  }

  bool take_done(int number) {
    FlowRank& rank = of(number);
    if (rank.next_done == rank.done.size()) {
      rank.done.clear();
      rank.next_done = 0;
      return false;
    }
    const Done done = rank.done[rank.next_done++];
    occupy(number, done.cost_s, [this, number, done] { of(number).progress.ended(done.work); });
    return true;
  }

  template <class Then>
  void occupy(int number, double seconds, Then then) {
    if (seconds <= 0) return then();
    of(number).busy = true;
    at(sg::s4u::Engine::get_clock() + seconds, [this, number, then] {
      of(number).busy = false;
      then();
      go_on(number);
    });
  }

  void send(int from, const Post& post) {
    const MessageKey key{from, post.peer, post.tag};
    Message& message = messages_[key];
    message.sent = true;
    message.bytes = post.bytes;
    message.of_sender = post.work;
    const bool starts = message.eager() || message.awaited;
    if (message.eager()) of(from).done.push_back({post.work});  // nobody waits for it
    if (starts) start(key, post.bytes);
  }

  void receive(int to, const Post& post) {
    const MessageKey key{post.peer, to, post.tag};
    Message& message = messages_[key];
    message.awaited = true;
    message.bytes = post.bytes;
    message.of_receiver = post.work;
    if (message.arrived) return deliver(key);
    if (message.sent && !message.eager()) start(key, post.bytes);
  }

  // Nothing shares a node's loopback, so that its messages need no network.
  void start(const MessageKey& key, std::uint64_t bytes) {
    const std::uint64_t carried = bytes + envelope_bytes;
    sg::s4u::Host* from = job_.hosts[static_cast<std::size_t>(key.from)];
    sg::s4u::Host* to = job_.hosts[static_cast<std::size_t>(key.to)];
    if (from == to && loopback_.unshared) {
      const double takes_s = loopback_.latency_s + static_cast<double>(carried) / loopback_.bytes_per_s;
      return at(sg::s4u::Engine::get_clock() + takes_s, [this, key] {
        arrive(key);
        go_on(key.from);
        go_on(key.to);
      });
    }
    global_bytes_ += static_cast<double>(carried) * crossings_.between(from, to);
    const Leaving message{key, bytes};
    if (bytes < long_bytes &&
        !connections_.leaves(key.from, key.to, message, carried, [=] { return bytes_on_the_way(from, to); }))
      return;
    leave(message);
  }

  void leave(const Leaving& message) {
    const MessageKey& key = message.key;
    NetworkFlow flow = begin_flow(job_.hosts[static_cast<std::size_t>(key.from)],
                                  job_.hosts[static_cast<std::size_t>(key.to)], message.bytes + envelope_bytes);
    const FlowId id = flow.id;
    flying_.emplace(id, Flight{std::move(flow), key, message.bytes});
  }

  void arrive(const MessageKey& key) {
    Message& message = messages_.at(key);
    message.arrived = true;
    if (message.awaited) deliver(key);
  }

  void take_landed() {
    spent_ = std::exchange(landed_, {});
    for (Flight& flight : spent_) end_flow(flight.flow);
    for (const Flight& flight : spent_) {
      if (flight.bytes < long_bytes)
        connections_.arrived(flight.key.from, flight.key.to, flight.bytes + envelope_bytes,
                             [this](const Leaving& next) { leave(next); });
      arrive(flight.key);
    }
    for (const Flight& flight : spent_) {
      go_on(flight.key.from);
      go_on(flight.key.to);
    }
  }

  // Only an eager message takes its receiver time; the sender of one has long been done.
  void deliver(const MessageKey& key) {
    const auto found = messages_.find(key);
    const Message message = found->second;
    messages_.erase(found);
    of(key.to).done.push_back({message.of_receiver, message.eager() ? cost_s(key.from, key.to) : 0});
    if (!message.eager()) of(key.from).done.push_back({message.of_sender});
  }

  const FlowJob& job_;
  const Loopback loopback_;
  GlobalCrossings& crossings_;
  double global_bytes_ = 0;
  std::vector<FlowRank> ranks_;
  std::unordered_map<MessageKey, Message, MessageHash> messages_;
  Connections<Leaving> connections_;  // of eager messages; long ones wait for each other in ScheduleProgress
  std::unordered_map<FlowId, Flight> flying_;
  std::vector<Flight> landed_, spent_;  // SimGrid looks at those that landed once more after take_landed()
};

void listen() {
  static bool listens = false;
  if (std::exchange(listens, true)) return;
  on_flow_end([](FlowId flow) {
    if (current_play != nullptr) current_play->landed(flow);
  });
}

}  // namespace

Result<Played> play_flows(const FlowJob& job, const std::vector<plan::BoundSchedule>& schedules,
                          GlobalCrossings& crossings, double silence_s) {
  listen();
  FlowPlay play(job, schedules, crossings);
  current_play = &play;
  Result<Played> found = play.play(silence_s);
  current_play = nullptr;
  return found;
}

}  // namespace plait::tuner
