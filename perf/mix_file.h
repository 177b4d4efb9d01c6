// A mix: the collective calls of a program, as a file (docs/bench.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "perf/layer.h"
#include "plan/model/collective.h"

namespace plait::perf {

// Calls of one collective and size.
struct MixCalls {
  int calls = 0;
  Collective collective = Collective::barrier;  // not of alltoallv
  bool alltoallv = false;                       // which Plait hands on
  std::size_t bytes = 0;                        // as in CallSpec; of alltoallv the mean of a pair's messages

  std::string label() const;  // "allreduce of 110 B"
};

struct Mix {
  std::string name;
  std::uint64_t seed = 0;
  std::vector<MixCalls> kinds;
};

// `invalid`, with the line's number, what was found and what was expected.
Result<Mix> parse_mix(std::string_view text);

// Every `divisor`-th call of each kind, but at least one.
Mix shortened(Mix mix, int divisor);

// The kinds (as indices) in the order of the calls: the same for the same mix everywhere.
std::vector<std::uint16_t> call_order(const Mix& mix);

}  // namespace plait::perf
