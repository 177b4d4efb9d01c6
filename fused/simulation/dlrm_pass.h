// A pass of training a recommendation model on many nodes, of one device each, predicted: with embeddings and their
// exchanges as kernels one after the other, and as fused operators. By the tiles, slices and orders that the operators
// run by (fused/tiles). Pure.
//
// The model: embedding tables are spread over the nodes, whole; MLP layers are on all nodes, which have a share of the
// batch each. A pass is
//
//   forward   pooling of all bags of a node's tables, all-to-all, top MLP; the bottom MLP beside the all-to-all
//   backward  top MLP, all-to-all of the gradients, their addition to the tables' rows; beside the all-to-all the
//             bottom MLP; behind it, on the network alone, an all-reduce of the MLP's gradients
//
// A device computes one thing at a time: rows at a rate of bytes, products at a rate of operations, each kernel after a
// launch. Fused, each slice costs its overhead beside its computation, and backward a copy; kernel by kernel neither.
// The interaction of features, the optimizer's work on the MLP and the reading of the data are left out.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "fused/layer.h"
#include "fused/simulation/network.h"
#include "fused/tiles/slice_size.h"

namespace plait::fused {

struct DlrmShape {
  std::int64_t batch = 1;   // samples of all nodes together: a multiple of these
  std::int64_t tables = 1;  // of a node
  std::int64_t dim = 1, pooling = 1;
  int bottom_layers = 0, top_layers = 0, width = 1;  // of the MLP: width x width each
};

struct DeviceCost {
  double seconds_per_byte = 0;       // of the memory, for rows that lie anywhere
  double seconds_per_operation = 0;  // of products
  double launch_s = 0;               // of a kernel
};

struct DlrmSystem {
  Network network;
  DeviceCost device;
  double overhead_s = 0;  // of a slice that is sent
};

// Of the slowest node: the embeddings with their exchanges, and what is beside them; and all together with the top MLP.
struct PassTimes {
  double forward_s = 0, backward_s = 0, total_s = 0;
};

struct PassComparison {
  PassTimes by_kernels, fused;
  // Alone: of a node's bags, of an exchange whose slices are all ready at once, of both MLPs in both directions.
  double pooling_s = 0, scattering_s = 0, exchange_s = 0, mlp_s = 0, all_reduce_s = 0;
  std::uint64_t slices = 0;  // that a node sends in a direction
};
PassComparison simulate_pass(const DlrmShape& shape, const DlrmSystem& system);

}  // namespace plait::fused
