// A plan file that is read comes back from what is written of it.
#include "plan/choose/plan_file.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;
using namespace plait::plan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<PlanFile> plan = parse_plan_file(fuzz::text_of(data, size));
  if (!plan.ok()) {
    fuzz::require(!plan.status().message().empty(), "a refusal says why");
    return 0;
  }
  const std::string written = plan_file_json(*plan);
  const Result<PlanFile> again = parse_plan_file(written);
  fuzz::require(again.ok() && plan_file_json(*again) == written, "what is written is that plan");
  return 0;
}
