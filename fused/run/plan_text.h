// A plan in words for people and programs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fused/exchange/exchange.h"
#include "fused/layer.h"

namespace plait::fused {

struct PlanNumbers {
  int workers = 0, ranks = 0;
  std::size_t slices = 0, tiles = 0;
};

// JSON: the operator, its numbers, how many ranks are reached in which way, and the bytes of this rank's places for
// slices.
std::string plan_text(std::string_view name, const PlanNumbers& numbers, const Exchange& exchange);

}  // namespace plait::fused
