// What `plait topo` prints of GPUs, as text for people and as JSON (docs/topo.md), and how it reads that JSON again.
// Pure, but for the file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "topo/gpus.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// One line a GPU and an island, or one that says why there is none.
std::string gpus_text(const Result<GpuTopology>& found);
nlohmann::ordered_json gpus_json(const Result<GpuTopology>& found);

// What was recorded on another machine: what `plait topo --json` prints there, or of that a node's member `gpus`. What
// is wrong with it is `invalid`, with what is expected.
Result<std::vector<GpuFacts>> parse_gpus(std::string_view text);
// The same, of a file, which the Status names.
Result<std::vector<GpuFacts>> read_gpus(const std::string& path);

}  // namespace plait::tuner
