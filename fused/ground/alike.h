// Numbers that all ranks must give alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "fused/layer.h"
#include "runtime/oob/oob.h"

namespace plait::fused {

struct Alike {
  const char* argument;
  std::int64_t value;
};

// What is wrong with those of all ranks, rank after rank, each as many as `names`: the first argument that is not rank
// 0's, and whose it is.
Status compare_alike(std::span<const Alike> names, std::span<const std::int64_t> values);

// Collective: the same on all ranks. `mine`: the same arguments on all ranks.
Status agree_on(Oob& all, const std::vector<Alike>& mine) noexcept;

}  // namespace plait::fused
