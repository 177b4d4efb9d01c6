// A step that is read, whatever its format, can be written in each, and comes back from Chakra's.
#include "plan/step/chakra_file.h"
#include "plan/step/chrome_file.h"
#include "plan/step/trace_file.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;
using namespace plait::plan;
using namespace plait::plan::step;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Result<Trace> trace = parse_trace(fuzz::text_of(data, size), 4);
  if (!trace.ok()) {
    fuzz::require(!trace.status().message().empty(), "a refusal says why");
    return 0;
  }
  fuzz::require(parse_step(step_json(trace->step)).ok(), "it is a step");
  for (const TaskSpan& span : spans_of(*trace))
    fuzz::require(span.begin >= 0 && span.begin <= span.end, "tasks end after they begin");
  fuzz::require(!chrome_text(*trace, spans_of(*trace)).empty(), "it is drawn");
  const Result<std::string> text = chakra_text(*trace, 4);
  fuzz::require(text.ok(), "Chakra has all that a step has");
  const Result<Trace> again = parse_trace(*text, 0);
  fuzz::require(again.ok() && again->step.tasks.size() == trace->step.tasks.size(), "it comes back");
  const Result<std::string> written = chakra_text(*again, 0);  // each dependency once, from here on
  const Result<Trace> third = parse_trace(*written, 0);
  fuzz::require(third.ok() && step_json(third->step) == step_json(again->step), "as it was");
  return 0;
}
