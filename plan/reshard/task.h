// What a resharding is asked to do: a tensor that lies sharded over one mesh of ranks shall lie on another mesh under
// another layout (Zhuang et al., "On Optimizing the Communication of Model Parallelism", section 2.2).
//
// Values and pure functions. Lengths are in elements unless they say bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace plait::plan::reshard {

inline constexpr int most_dimensions = 8;  // of a tensor or a mesh
inline constexpr int most_mesh_ranks = 1 << 16;

// A grid of ranks, row-major: the last dimension is the fastest.
struct Mesh {
  std::vector<int> dims;
  std::vector<int> ranks;  // of the communicator, one a place of the grid
};

// By tensor dimension: the mesh dimensions that it is split over, the most significant first; none: replicated (R).
struct ShardingSpec {
  std::vector<std::vector<int>> axes;
};

struct Task {
  Mesh source, destination;
  ShardingSpec source_spec, destination_spec;
  std::vector<std::int64_t> shape;
  std::size_t element_bytes = 1;
};

// "2x4". `argument` names it in the message of a failure.
Result<std::vector<int>> parse_dims(std::string_view text, std::string_view argument);
// "1024,1024,512", positive.
Result<std::vector<std::int64_t>> parse_shape(std::string_view text, std::string_view argument);
// "S0R", "S01R", "RS1R": one entry a tensor dimension, R or S with one digit a mesh dimension.
Result<ShardingSpec> parse_spec(std::string_view text, std::string_view argument);
std::string text(const ShardingSpec& spec);

// A mesh of these dimensions whose ranks are first, first + 1, ..
Mesh consecutive_mesh(std::vector<int> dims, int first);

// Ok when everything fits together, in a communicator of `ranks` ranks; else a message that begins with the argument:
// src_mesh, dst_mesh, src_spec, dst_spec, shape or element.
Status check(const Task& task, int ranks);

// [begin, end) in each tensor dimension.
struct Extent {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Extent&) const = default;
};
struct Box {
  int dimensions = 0;
  std::array<Extent, most_dimensions> extent{};

  std::int64_t length(int dimension) const {
    const Extent& one = extent[static_cast<std::size_t>(dimension)];
    return one.end - one.begin;
  }
  std::int64_t elements() const {
    std::int64_t product = 1;
    for (int d = 0; d < dimensions; ++d) product *= length(d);
    return product;
  }
  bool operator==(const Box&) const = default;
};

// No elements where they do not meet: then some length is 0.
Box intersection(const Box& a, const Box& b);

// The part of the tensor that a place of the mesh holds. A dimension of n elements that is split into p parts has parts
// of ceil(n / p), of which the last ones are shorter or empty (as GSPMD pads them; nothing is padded here).
// Precondition: check() is ok.
Box shard(const Mesh& mesh, const ShardingSpec& spec, const std::vector<std::int64_t>& shape, int place);

}  // namespace plait::plan::reshard
