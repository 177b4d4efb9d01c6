#include "fused/simulation/dlrm_pass.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "fused/tiles/tiles.h"

namespace plait::fused {
namespace {

constexpr double element_bytes = sizeof(float), index_bytes = sizeof(std::int64_t);

class Pass {
 public:
  Pass(const DlrmShape& shape, const DlrmSystem& system)
      : shape_(shape), system_(system), nodes_(system.network.nodes()), own_node_(static_cast<std::size_t>(nodes_)) {
    for (std::size_t node = 0; node < own_node_.size(); ++node) own_node_[node] = static_cast<int>(node);
    const Box box{{0, shape.batch / nodes_}, {0, shape.tables}};
    const auto cell = static_cast<std::size_t>(row_bytes());
    const auto bytes = static_cast<std::uint64_t>(box.cells()) * cell;
    const std::size_t slice = slice_bytes(
        {.overhead_s = system.overhead_s, .seconds_per_byte = system.network.cost().seconds_per_byte}, bytes);
    pane_ = cut(box, grain_of(box, {.cell_bytes = cell, .slice_bytes = slice, .tile_bytes = 8 * 1024}));
    exchange_s_ = exchange_alone();
  }

  PassComparison compare() const {
    PassComparison compared;
    const double all_cells = static_cast<double>(shape_.batch * shape_.tables);
    compared.pooling_s = all_cells * pooling_s();
    compared.scattering_s = all_cells * scattering_s();
    compared.exchange_s = exchange_s_;
    compared.mlp_s = (layers() + 2.0 * layers()) * layer_s();
    compared.all_reduce_s = system_.network.all_reduce_seconds(layers() * width() * width() * element_bytes);
    compared.slices = pane_.slices.size() * static_cast<std::uint64_t>(nodes_ - 1);
    compared.by_kernels = whole(plain_forward(), plain_backward());
    compared.fused = whole(fused_forward(), fused_backward());
    return compared;
  }

 private:
  // Where a direction's computation ends, and its exchange.
  struct Ends {
    double computed_s = 0, exchanged_s = 0;
    double gradients_s = 0;  // when those of the MLP are all there
  };
  PassTimes whole(double forward_s, const Ends& backward) const {
    PassTimes times{.forward_s = forward_s, .backward_s = with_all_reduce(backward)};
    times.total_s = times.forward_s + shape_.top_layers * 3 * layer_s() + times.backward_s;
    return times;
  }
  using Messages = std::vector<NetworkMessage>;

  double width() const { return shape_.width; }
  double layers() const { return shape_.bottom_layers + shape_.top_layers; }
  double row_bytes() const { return static_cast<double>(shape_.dim) * element_bytes; }
  // Of one bag: its rows and their indices, and its sum or gradient; rows that are added to are read and written.
  double pooling_s() const { return (rows_s(1) + row_bytes() * system_.device.seconds_per_byte); }
  double scattering_s() const { return (rows_s(2) + row_bytes() * system_.device.seconds_per_byte); }
  double rows_s(int times) const {
    return static_cast<double>(shape_.pooling) * (times * row_bytes() + index_bytes) * system_.device.seconds_per_byte;
  }
  double copying_s() const { return 2 * row_bytes() * system_.device.seconds_per_byte; }
  // A layer's product for a node's share of the batch: its operations, or its weights from memory.
  double layer_s() const {
    const double samples = static_cast<double>(shape_.batch) / nodes_;
    return system_.device.launch_s + std::max(2 * samples * width() * width() * system_.device.seconds_per_operation,
                                              width() * width() * element_bytes * system_.device.seconds_per_byte);
  }
  double bottom_s() const { return shape_.bottom_layers * layer_s(); }

  // ---- What is sent ----

  std::uint64_t bytes_of(const Slice& slice) const {
    return static_cast<std::uint64_t>(slice.box.cells()) * static_cast<std::uint64_t>(row_bytes());
  }
  static double last_arrival(const Messages& messages) {
    double last = 0;
    for (const NetworkMessage& message : messages) last = std::max(last, message.arrival_s);
    return last;
  }
  std::vector<int> owners_of(int node) const { return communication_order(own_node_, node); }

  // From each node to all others, owner after owner; `ready` says when a slice is, in their order on its node.
  template <class Ready>
  Messages delivered(Ready&& ready) const {
    Messages messages;
    messages.reserve(pane_.slices.size() * static_cast<std::size_t>(nodes_) * static_cast<std::size_t>(nodes_ - 1));
    for (int node = 0; node < nodes_; ++node) {
      std::size_t number = 0;
      for (const int owner : owners_of(node)) {
        if (owner == node) continue;
        for (const Slice& slice : pane_.slices)
          messages.push_back({.from = node, .to = owner, .ready_s = ready(number++, slice), .bytes = bytes_of(slice)});
      }
    }
    system_.network.deliver(messages);
    return messages;
  }
  double exchange_alone() const {
    return last_arrival(delivered([](std::size_t, const Slice&) { return 0.0; }));
  }
  // One slice after the other, each of which takes a node so long a cell, and its overhead.
  Messages delivered_one_by_one(double begin_s, double cell_s) const {
    double now = begin_s;
    return delivered([&](std::size_t number, const Slice& slice) {
      if (number == 0) now = begin_s;
      return now += static_cast<double>(slice.box.cells()) * cell_s + system_.overhead_s;
    });
  }

  // ---- Forward ----

  double plain_forward() const {
    const double computed = system_.device.launch_s + static_cast<double>(shape_.batch * shape_.tables) * pooling_s();
    return computed + std::max(system_.device.launch_s + exchange_s_, bottom_s());
  }
  double fused_forward() const {
    const double begin = system_.device.launch_s;
    const double exchanged = last_arrival(delivered_one_by_one(begin, pooling_s()));
    const double sends = static_cast<double>(pane_.slices.size()) * (nodes_ - 1) * system_.overhead_s;
    const double computed = begin + static_cast<double>(shape_.batch * shape_.tables) * pooling_s() + sends;
    return std::max(exchanged, computed + bottom_s());
  }

  // ---- Backward ----

  Ends plain_backward() const {
    const double exchanged = system_.device.launch_s + exchange_s_;
    const double begins = std::max(exchanged, 2 * bottom_s()) + system_.device.launch_s;
    return {begins + static_cast<double>(shape_.batch * shape_.tables) * scattering_s(), exchanged, 2 * bottom_s()};
  }

  // All slices are sent, then the bottom MLP computes, then what is the node's own and what has come is added.
  Ends fused_backward() const {
    const double begin = system_.device.launch_s;
    const Messages messages = delivered_one_by_one(begin, copying_s());
    const double sent =
        static_cast<double>(nodes_ - 1) * (static_cast<double>(pane_.slices.size()) * system_.overhead_s +
                                           static_cast<double>(cells_of_pane()) * copying_s());
    std::vector<std::vector<double>> come(own_node_.size() * own_node_.size());  // by source and owner: its slices
    for (const NetworkMessage& message : messages) come[pair(message.from, message.to)].push_back(message.arrival_s);
    Ends ends{0, last_arrival(messages), begin + sent + 2 * bottom_s()};
    for (int node = 0; node < nodes_; ++node)
      ends.computed_s = std::max(ends.computed_s, added(node, come, ends.gradients_s));
    return ends;
  }

  std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from) * own_node_.size() + static_cast<std::size_t>(to);
  }
  std::int64_t cells_of_pane() const { return shape_.batch / nodes_ * shape_.tables; }

  // When a node has added everything: tables whose next slice has come take turns, the first ones first.
  double added(int node, const std::vector<std::vector<double>>& come, double begin_s) const {
    struct Chain {
      std::vector<std::size_t> slices;  // of a pane, in their order
      std::size_t source = 0, slice = 0;
    };
    std::map<std::int64_t, Chain> chains;  // by their first table
    for (std::size_t number = 0; number < pane_.slices.size(); ++number)
      chains[pane_.slices[number].box.columns.begin].slices.push_back(number);
    const std::vector<int> sources = arrival_order(own_node_, node);
    double now = begin_s;
    std::size_t left = pane_.slices.size() * sources.size();
    while (left > 0) {
      double next = HUGE_VAL;
      Chain* ready = nullptr;
      for (auto& [first, chain] : chains) {
        if (chain.source == sources.size()) continue;
        const int source = sources[chain.source];
        const double comes = source == node ? 0 : come[pair(source, node)][chain.slices[chain.slice]];
        next = std::min(next, comes);
        if (comes > now) continue;
        ready = &chain;
        break;
      }
      if (ready == nullptr) {
        now = next;
        continue;
      }
      now += static_cast<double>(pane_.slices[ready->slices[ready->slice]].box.cells()) * scattering_s();
      if (++ready->slice == ready->slices.size()) {
        ready->slice = 0;
        ++ready->source;
      }
      --left;
    }
    return now;
  }

  // The MLP's gradients go when the network has nothing else to do and they are all there.
  double with_all_reduce(const Ends& ends) const {
    const double reduced = system_.network.all_reduce_seconds(layers() * width() * width() * element_bytes);
    return std::max(ends.computed_s, std::max(ends.exchanged_s, ends.gradients_s) + reduced);
  }

  const DlrmShape shape_;
  const DlrmSystem& system_;
  const int nodes_;
  std::vector<int> own_node_;  // each rank is a node of its own
  Pane pane_;                  // of any node for any other: all are alike
  double exchange_s_ = 0;      // of messages that are all ready at once
};

}  // namespace

PassComparison simulate_pass(const DlrmShape& shape, const DlrmSystem& system) { return Pass(shape, system).compare(); }

}  // namespace plait::fused
