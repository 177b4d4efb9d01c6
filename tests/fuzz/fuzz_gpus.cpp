// Recorded GPUs that are read have islands, and lines for people; what is refused says why. What is printed is read
// again.
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz.h"
#include "tuner/text/gpu_report.h"

using namespace plait;
using namespace plait::tuner;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto gpus = parse_gpus(fuzz::text_of(data, size));
  if (!gpus.ok()) {
    fuzz::require(!gpus.status().message().empty(), "a refusal says why");
    return 0;
  }
  const std::vector<int> island_of = islands_of(*gpus);
  fuzz::require(island_of.size() == gpus->size(), "an island a GPU");
  GpuTopology found;
  for (std::size_t gpu = 0; gpu < gpus->size(); ++gpu) {
    fuzz::require(((*gpus)[gpu].links.empty()) == (island_of[gpu] < 0), "whatever is linked is on an island");
    found.gpus.push_back({.facts = (*gpus)[gpu], .island = island_of[gpu], .nics = {}});
  }
  fuzz::require(!gpus_text(found).empty(), "there is always something to say");
  const std::string printed = gpus_json(found).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const auto again = parse_gpus(printed);
  fuzz::require(again.ok() && islands_of(*again) == island_of, "what is printed is read again");
  return 0;
}
