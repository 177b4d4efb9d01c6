#include "fused/simulation/network.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>

namespace plait::fused {
namespace {

constexpr int links_a_node = 4;  // forward and back along the row, then along the column

// Steps along a ring by the shorter way, back ones negative. Of two ways of one length every other pair takes one.
int ring_steps(int from, int to, int length) {
  const int forward = (to - from + length) % length, back = length - forward;
  if (forward == back) return (from + to) % 4 < 2 ? forward : -back;
  return forward < back ? forward : -back;
}

// A message's head that comes to a link of its path, or a link that has passed a message.
struct NetworkEvent {
  double time_s;
  std::uint32_t message, place;  // of the link in the path
  bool passed;
  bool operator>(const NetworkEvent& other) const {
    return std::tie(time_s, message, place, passed) > std::tie(other.time_s, other.message, other.place, other.passed);
  }
};

struct Waiting {
  std::uint32_t message, place;
};

struct LinkState {
  bool busy = false, took_sent = false;
  std::queue<Waiting> on_their_way, sent;

  // By turns, where there are both.
  std::queue<Waiting>& next() {
    if (on_their_way.empty() || sent.empty()) return on_their_way.empty() ? sent : on_their_way;
    took_sent = !took_sent;
    return took_sent ? sent : on_their_way;
  }
};

class Delivery {
 public:
  Delivery(const Network& network, int links, std::vector<NetworkMessage>& messages)
      : network_(network),
        messages_(messages),
        links_(static_cast<std::size_t>(links)),
        paths_(static_cast<std::size_t>(network.nodes()) * static_cast<std::size_t>(network.nodes())) {}

  void run() {
    for (std::uint32_t number = 0; number < messages_.size(); ++number) {
      NetworkMessage& message = messages_[number];
      message.arrival_s = message.ready_s;
      if (message.from != message.to) events_.push({message.ready_s, number, 0, false});
    }
    while (!events_.empty()) {
      const NetworkEvent event = events_.top();
      events_.pop();
      const auto link = static_cast<std::size_t>(path_of(messages_[event.message])[event.place]);
      if (event.passed)
        links_[link].busy = false;
      else
        (event.place > 0 ? links_[link].on_their_way : links_[link].sent).push({event.message, event.place});
      if (!links_[link].busy) take_next(links_[link], event.time_s);
    }
  }

 private:
  const std::vector<int>& path_of(const NetworkMessage& message) {
    auto& links = paths_[static_cast<std::size_t>(message.from) * static_cast<std::size_t>(network_.nodes()) +
                         static_cast<std::size_t>(message.to)];
    if (links.empty()) links = network_.path(message.from, message.to);
    return links;
  }

  void take_next(LinkState& link, double now_s) {
    std::queue<Waiting>& from = link.next();
    if (from.empty()) return;
    const Waiting next = from.front();
    from.pop();
    link.busy = true;
    NetworkMessage& message = messages_[next.message];
    const LinkCost& cost = network_.cost();
    const double passed_s = now_s + static_cast<double>(message.bytes) * cost.seconds_per_byte;
    events_.push({passed_s, next.message, next.place, true});
    if (next.place + 1 < path_of(message).size())
      events_.push({now_s + cost.latency_s, next.message, next.place + 1, false});
    else
      message.arrival_s = passed_s + cost.latency_s;
  }

  const Network& network_;
  std::vector<NetworkMessage>& messages_;
  std::vector<LinkState> links_;
  std::vector<std::vector<int>> paths_;
  std::priority_queue<NetworkEvent, std::vector<NetworkEvent>, std::greater<>> events_;
};

double ring_seconds(double bytes, int nodes, int ways, const LinkCost& cost) {
  const double steps = 2.0 * (nodes - 1);
  return steps / nodes * bytes / ways * cost.seconds_per_byte + steps * cost.latency_s;
}

}  // namespace

Network Network::torus(int columns, int rows, const LinkCost& cost) { return {columns, rows, true, cost}; }
Network Network::crossbar(int nodes, const LinkCost& cost) { return {nodes, 1, false, cost}; }

std::vector<int> Network::path(int from, int to) const {
  if (!is_torus_) return {from * links_a_node, to * links_a_node + 1};
  std::vector<int> links;
  int column = from % columns_, row = from / columns_;
  const auto go = [&](int steps, int& place, int length, int first_link) {
    for (; steps != 0; steps += steps > 0 ? -1 : 1) {
      links.push_back((row * columns_ + column) * links_a_node + first_link + (steps > 0 ? 0 : 1));
      place = (place + (steps > 0 ? 1 : length - 1)) % length;
    }
  };
  go(ring_steps(column, to % columns_, columns_), column, columns_, 0);
  go(ring_steps(row, to / columns_, rows_), row, rows_, 2);
  return links;
}

void Network::deliver(std::vector<NetworkMessage>& messages) const {
  Delivery(*this, nodes() * links_a_node, messages).run();
}

double Network::all_reduce_seconds(double bytes) const {
  if (!is_torus_) return ring_seconds(bytes, nodes(), 1, cost_);
  return ring_seconds(bytes, columns_, 2, cost_) + ring_seconds(bytes / columns_, rows_, 2, cost_);
}

}  // namespace plait::fused
