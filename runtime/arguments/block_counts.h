// Lengths of blocks by rank, in the lists of a request.
#pragma once

#include <cstddef>
#include <numeric>

#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Counts by rank, times `unit`. False when one is negative.
inline bool take_counts(const Communicator& communicator, Request& request, const NumberList& counts,
                        std::size_t unit) {
  if (!counts.given()) return false;
  request.lists->counts.resize(static_cast<std::size_t>(communicator.ranks));
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(communicator.ranks); ++rank) {
    if (counts[rank] < 0) return false;
    request.lists->counts[rank] = static_cast<std::size_t>(counts[rank]) * unit;
  }
  request.call.counts = request.lists->counts.data();
  return true;
}

inline std::size_t sum_of_counts(const Request& request) {
  return std::accumulate(request.lists->counts.begin(), request.lists->counts.end(), std::size_t{0});
}

}  // namespace plait::runtime
