// What the arguments of all fused plans have in common: how they are refused, and the options' words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "fused/layer.h"

namespace plait::fused {

// Says what is wrong with an argument.
Status bad_argument(std::string_view argument, const std::string& what);

// The least and the greatest that is allowed.
struct Bounds {
  std::int64_t least, greatest;
};
Status check_within(std::string_view argument, std::int64_t value, const Bounds& expected);

struct PlanOptions {
  int workers = 0;              // 0: as many as the rank has processors
  std::size_t slice_bytes = 0;  // 0: by the cost model
  bool checks = true;           // of what each run is given
  bool aware = true;            // of communication, in the order of tiles
};
enum class HasChecks : bool { no, yes };  // whether check= is one of the words
Result<PlanOptions> parse_plan_options(const std::string& text, HasChecks has_checks);

}  // namespace plait::fused
