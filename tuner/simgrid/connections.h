// What is on its way between two ranks: as over a connection, whose messages leave one after the other.
//
// SimGrid's flows of one pair share the way in equal parts, so that of several messages that are posted at once the
// first would arrive with the last. A network card sends them in their order: the next leaves when those before it
// have, which is when no more is on its way than the way itself holds, its latency times its rate.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

namespace plait::tuner {

template <class Message>
class Connections {
 public:
  // Whether a message leaves now; else it waits behind those before it. `window_bytes()` is what the way holds, asked
  // only where something is on it.
  template <class WindowBytes>
  bool leaves(int from, int to, const Message& message, std::uint64_t bytes, WindowBytes&& window_bytes) {
    Connection& connection = connections_[key(from, to)];
    if (connection.bytes > 0 && connection.window == 0) connection.window = window_bytes() + 1;
    if (!connection.waiting.empty() || (connection.bytes > 0 && connection.bytes >= connection.window)) {
      connection.waiting.push_back({message, bytes});
      return false;
    }
    connection.bytes += bytes;
    return true;
  }

  // One has arrived: calls leave(message) for those that leave now.
  template <class Leave>
  void arrived(int from, int to, std::uint64_t bytes, Leave&& leave) {
    const auto found = connections_.find(key(from, to));
    Connection& connection = found->second;
    connection.bytes -= bytes;
    while (!connection.waiting.empty() && (connection.bytes == 0 || connection.bytes < connection.window)) {
      const Waiting next = connection.waiting.front();
      connection.waiting.pop_front();
      connection.bytes += next.bytes;
      leave(next.message);
    }
    if (connection.bytes == 0) connections_.erase(found);
  }

 private:
  struct Waiting {
    Message message;
    std::uint64_t bytes;
  };
  struct Connection {
    std::uint64_t bytes = 0;   // on their way
    std::uint64_t window = 0;  // one more than the way holds; 0: not known yet
    std::deque<Waiting> waiting = {};
  };
  static std::uint64_t key(int from, int to) {
    return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint32_t>(to);
  }
  std::unordered_map<std::uint64_t, Connection> connections_;
};

}  // namespace plait::tuner
