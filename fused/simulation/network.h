// Messages between the nodes of a simulated network, link by link. Pure.
//
// A message goes from link to link without being stored (virtual cut-through): its head reaches the next link a link's
// latency after it has entered one, and a link is taken for the message's bytes. A link takes what is on its way and
// what its own node sends by turns, each in the order in which the heads come.
#pragma once

#include <cstdint>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

struct LinkCost {
  double latency_s = 0;         // of one link
  double seconds_per_byte = 0;  // of one link, in one direction
};

struct NetworkMessage {
  int from = 0, to = 0;
  double ready_s = 0;  // when it may enter
  std::uint64_t bytes = 0;
  double arrival_s = 0;  // of its last byte, once it is delivered
};

class Network {
 public:
  // Nodes in a row of `columns`, row after row; each has a link to each of its four neighbours, around the edges too.
  // Messages go along the row first, by the shorter way.
  static Network torus(int columns, int rows, const LinkCost& cost);
  // Each node has one port in each direction, and nothing between the ports is ever short.
  static Network crossbar(int nodes, const LinkCost& cost);

  int nodes() const { return columns_ * rows_; }
  const LinkCost& cost() const { return cost_; }
  // Delivers all of them, beginning with idle links.
  void deliver(std::vector<NetworkMessage>& messages) const;
  // A sum over all nodes, of which each has so many bytes: reduced and gathered along the rows, and in between along
  // the columns, by rings in both directions; over ports by one ring.
  double all_reduce_seconds(double bytes) const;
  // The links from one node to another, in their order.
  std::vector<int> path(int from, int to) const;

 private:
  Network(int columns, int rows, bool is_torus, const LinkCost& cost)
      : columns_(columns), rows_(rows), is_torus_(is_torus), cost_(cost) {}

  int columns_, rows_;
  bool is_torus_;
  LinkCost cost_;
};

}  // namespace plait::fused
