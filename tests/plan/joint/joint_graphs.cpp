#include "tests/plan/joint/joint_graphs.h"

#include <algorithm>
#include <random>
#include <utility>

namespace plait::plan::joint {
namespace {

class GraphMaker {
 public:
  explicit GraphMaker(const GraphRequest& request) : request_(request), random_(request.seed) {
    for (int channel = 0; channel < request.channels; ++channel)
      graph_.channels.push_back({.name = "c" + std::to_string(channel)});
    if (request.contended && request.channels > 1) graph_.channels.back().gain = {1, 1.4};
  }

  StepGraph made() {
    switch (request_.kind) {
      case GraphKind::data_parallel:
        data_parallel();
        break;
      case GraphKind::fully_sharded:
        fully_sharded();
        break;
      case GraphKind::recommendation:
        recommendation();
        break;
      case GraphKind::pipeline:
        pipeline();
        break;
      case GraphKind::random:
        anything();
        break;
    }
    balance();
    return std::move(graph_);
  }

 private:
  double draw(double least, double most) { return std::uniform_real_distribution<double>(least, most)(random_); }
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool chance(double of_one) { return draw(0, 1) < of_one; }

  int compute(const char* what, double seconds, std::vector<int> after = {}, std::vector<int> after_previous = {}) {
    graph_.tasks.push_back({.name = what,
                            .seconds = seconds * draw(0.7, 1.3),
                            .after = std::move(after),
                            .after_previous = std::move(after_previous)});
    return static_cast<int>(graph_.tasks.size()) - 1;
  }

  int communicate(const char* what, double seconds, std::vector<int> after = {}, std::vector<int> after_previous = {}) {
    graph_.tasks.push_back({.name = what,
                            .kind = TaskKind::operation,
                            .options = options(seconds * draw(0.6, 1.6)),
                            .after = std::move(after),
                            .after_previous = std::move(after_previous)});
    return static_cast<int>(graph_.tasks.size()) - 1;
  }

  Piece piece(int channel, double seconds, std::vector<int> after = {}) {
    Piece made{.channels = std::uint32_t{1} << channel, .seconds = seconds, .after = std::move(after)};
    if (request_.contended) {
      made.load = draw(0, 0.3);
      made.rate_beside_computation = draw(0.8, 1);
    }
    return made;
  }

  int other_channel() { return request_.channels > 1 ? pick(1, request_.channels - 1) : 0; }

  Option segments(double seconds, int count) {
    Option option{.name = "segments " + std::to_string(count), .segments_only = true};
    const double each = seconds / count + 0.02 * seconds;
    for (int i = 0; i < count; ++i) option.pieces.push_back(piece(0, each));
    return option;
  }

  Option split(double seconds) {
    const double share = draw(0.5, 0.8), slower = draw(1.2, 2.5);
    return {"split", {piece(0, seconds * share), piece(other_channel(), seconds * (1 - share) * slower)}};
  }

  Option chain(double seconds) {
    const int other = other_channel();
    const double outer = seconds * draw(0.2, 0.45), inner = seconds * draw(0.5, 0.9);
    return {"chain", {piece(0, outer), piece(other, inner, {0}), piece(0, outer * 0.8, {1})}};
  }

  std::vector<Option> options(double seconds) {
    std::vector<Option> all = {{"usual", {piece(0, seconds)}}, {"other channel", {}}, split(seconds), chain(seconds)};
    all[1].pieces = {piece(other_channel(), seconds * draw(1.1, 2.5))};
    all.push_back({"other algorithm", {piece(0, seconds * draw(0.9, 1.4))}});
    for (int count = 2; count <= 8; count *= 2) all.push_back(segments(seconds, count));
    std::erase_if(all, [&](const Option& option) { return std::ssize(option.pieces) > request_.most_pieces; });
    std::shuffle(all.begin() + 1, all.end(), random_);
    all.resize(std::min<std::size_t>(all.size(), static_cast<std::size_t>(pick(1, request_.most_options))));
    return all;
  }

  void data_parallel() {
    const int layers = std::max(1, request_.operations);
    for (int layer = 0; layer < layers; ++layer) compute("forward", 1, {}, {2 * layers + 2 * (layers - 1 - layer)});
    for (int index = 0; index < layers; ++index)
      graph_.tasks[index].after_previous = {layers + 2 * (layers - 1 - index) + 1};
    for (int layer = layers; layer-- > 0;) communicate("gradient", 1, {compute("backward", 2)});
  }

  // Each all-gather is submitted a layer ahead of its use.
  void fully_sharded() {
    const int layers = std::max(1, request_.operations / 3);
    std::vector<int> gathers;
    const auto gather = [&] { gathers.push_back(communicate("all-gather", 1)); };
    gather();
    for (int layer = 0; layer < layers; ++layer) {
      if (layer + 1 < layers) gather();
      compute("forward", 1, {gathers[layer]});
    }
    std::vector<int> backward_gathers = {communicate("all-gather", 1)}, scatters;
    for (int layer = 0; layer < layers; ++layer) {
      if (layer + 1 < layers) backward_gathers.push_back(communicate("all-gather", 1));
      scatters.push_back(communicate("reduce-scatter", 1, {compute("backward", 2, {backward_gathers[layer]})}));
    }
    compute("update", 0.5);
    for (int layer = 0; layer < layers; ++layer)
      graph_.tasks[gathers[layer]].after_previous = {scatters[layers - 1 - layer]};
  }

  // As Figure 13, several times over: tables, a bottom and a top perceptron whose layers are reduced apart.
  void recommendation() {
    const int parts = std::max(1, request_.operations / 6);
    std::vector<int> tops(2, -1);
    for (int part = 0; part < parts; ++part) {
      const int prepared = communicate("prefetch", 0.6);
      const int looked_up = compute("embedding forward", 0.6);
      graph_.tasks[looked_up].after_previous = {prepared};
      const int exchanged = communicate("all-to-all forward", 2, {looked_up});
      const int bottom_forward = compute("bottom forward", 1);
      const int top_forward = compute("top forward", 1.5, {exchanged});
      compute("top backward", 2);
      tops[0] = communicate("all-reduce top", 0.8);
      tops[1] = communicate("all-reduce top", 0.8);
      compute("interaction", 0.5);
      const int back = communicate("all-to-all backward", 2);
      compute("bottom backward", 1.5);
      const int bottom = communicate("all-reduce bottom", 2);
      const int updated = compute("embedding backward", 0.8, {back});
      graph_.tasks[looked_up].after_previous.push_back(updated);
      graph_.tasks[bottom_forward].after_previous = {bottom};
      graph_.tasks[top_forward].after_previous = tops;
    }
  }

  // The steady part of 1F1B: a micro-batch comes, goes, and comes back.
  void pipeline() {
    const int batches = std::max(1, request_.operations / 5);
    std::vector<int> arrivals, gradients;
    arrivals.push_back(communicate("receive activation", 0.7));
    for (int batch = 0; batch < batches; ++batch) {
      gradients.push_back(communicate("receive gradient", 0.7));
      if (batch + 1 < batches) arrivals.push_back(communicate("receive activation", 0.7));
      communicate("send activation", 0.7, {compute("forward", 1, {arrivals[batch]})});
      communicate("send gradient", 0.7, {compute("backward", 2, {gradients[batch]})});
    }
    std::vector<int> reduced;
    for (int bucket = 0; bucket < batches; ++bucket) reduced.push_back(communicate("gradient", 1));
    compute("update", 0.5, {reduced.begin(), reduced.begin() + static_cast<std::ptrdiff_t>(reduced.size()) / 2});
    graph_.tasks[1].after_previous = {reduced.back()};
    for (Task& task : graph_.tasks)
      if (task.name == "forward") task.after_previous = {reduced.back()};
  }

  std::vector<int> some(int below, int most) {
    std::vector<int> tasks;
    for (int i = pick(0, most); i > 0 && below > 0; --i) tasks.push_back(pick(std::max(0, below - 12), below - 1));
    return tasks;
  }

  void anything() {
    for (int operations = 0; operations < request_.operations;) {
      const int own = static_cast<int>(graph_.tasks.size());
      if (chance(0.45)) {
        compute("computation", draw(0.2, 2), some(own, 2));
      } else {
        communicate("operation", draw(0.3, 2), some(own, 1));
        ++operations;
      }
    }
    compute("last", 1, some(static_cast<int>(graph_.tasks.size()), 2));
    const int tasks = static_cast<int>(graph_.tasks.size());
    for (Task& task : graph_.tasks)
      if (chance(0.25)) task.after_previous = {pick(0, tasks - 1)};
  }

  // Computation as long as asked for.
  void balance() {
    const std::vector<int> greedy = greedy_options(graph_);
    std::vector<double> busy(graph_.channels.size());
    double computation = 0;
    for (std::size_t task = 0; task < graph_.tasks.size(); ++task) {
      computation += graph_.tasks[task].seconds;
      if (graph_.tasks[task].kind == TaskKind::computation) continue;
      for (const Piece& piece : graph_.tasks[task].options[greedy[task]].pieces)
        for (std::size_t channel = 0; channel < busy.size(); ++channel)
          if ((piece.channels >> channel & 1) != 0) busy[channel] += piece.seconds;
    }
    const double wanted = *std::max_element(busy.begin(), busy.end()) / request_.communication;
    if (computation > 0)
      for (Task& task : graph_.tasks) task.seconds *= wanted / computation;
  }

  const GraphRequest& request_;
  std::mt19937_64 random_;
  StepGraph graph_;
};

}  // namespace

const char* name(GraphKind kind) {
  switch (kind) {
    case GraphKind::data_parallel:
      return "data parallel";
    case GraphKind::fully_sharded:
      return "fully sharded";
    case GraphKind::recommendation:
      return "recommendation";
    case GraphKind::pipeline:
      return "pipeline";
    case GraphKind::random:
      return "random";
  }
  return "";
}

StepGraph random_graph(const GraphRequest& request) { return GraphMaker(request).made(); }

}  // namespace plait::plan::joint
