// What one training step computes and reduces, layer by layer: a file (docs/overlap.md).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/overlap/overlap_model.h"
#include "plan/overlap/overlap_plan.h"

namespace plait::plan {

struct Layer {
  std::string name;
  std::size_t bytes = 0;  // of its gradient; 0: it has no parameters
  double seconds = 0;     // of its backward computation, with nothing beside it
};

struct LayerTable {
  std::string model;
  std::vector<Layer> layers;  // in the order of the backward pass: the last layer of the network first
  double bytes_factor = 1;    // gradients over those of the real network, where they were scaled; in no file
};

inline constexpr std::size_t most_layers = most_overlap_calls;

// The layers that have gradients are calls; what the others compute counts for the call after them. Precondition: some
// layer has.
BackwardPass backward_pass(const LayerTable& table);
std::vector<OverlapCall> overlap_calls(const LayerTable& table);

// Another duration of the whole pass, and gradients of another size; both factors are positive. No gradient vanishes.
LayerTable scaled(LayerTable table, double seconds_factor, double bytes_factor);

// Fails (invalid) with the place and what was expected there: a table has a layer with a gradient, and computes.
Result<LayerTable> parse_layers(std::string_view text);
std::string layers_json(const LayerTable& table);
// Reads and parses a file. Fails (invalid) with its name, the place and the reason. Blocks on the disk.
Result<LayerTable> read_layers(const std::string& path);

}  // namespace plait::plan
