// A user's plan (PLAIT_PLAN): a program that is read comes back from its text, and a plan that is taken for some call
// on some hierarchy can be lowered and proven.
#include "plan/choose/candidate.h"
#include "plan/lower/proof.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;
using namespace plait::plan;

namespace {

void check_text(std::string_view input) {
  const Result<Program> program = parse_program(input);
  if (!program.ok()) return fuzz::require(!program.status().message().empty(), "a refusal says why");
  const std::string written = text(*program);
  const Result<Program> again = parse_program(written);
  fuzz::require(again.ok() && text(*again) == written, "a program's text is that program");
}

// The first byte draws the call.
void check_candidate(std::uint8_t drawn, std::string_view input) {
  static const Hierarchy hierarchies[] = {Hierarchy::nodes_of(std::array{2, 2}),
                                          Hierarchy::nodes_of(std::array{3, 1, 2}),
                                          Hierarchy::uniform_of(std::array{2, 2, 2})};
  static const Machine machine = default_machine();
  const Hierarchy& hierarchy = hierarchies[drawn / 32 % std::size(hierarchies)];
  std::vector<std::size_t> counts(static_cast<std::size_t>(hierarchy.ranks()), 100);
  Call call{.collective = static_cast<Collective>(drawn % planned_collectives), .count = 1000, .element_bytes = 4};
  call.commutative = !reduces(call.collective) || drawn < 128;
  if (call.collective == Collective::allgatherv || call.collective == Collective::reduce_scatter)
    call.counts = counts.data();
  const auto candidate = named_candidate(input, call, {.hierarchy = hierarchy, .machine = machine});
  // Every chunk is a block, and the proof is quadratic in them.
  if (!candidate.ok() || candidate->chunks > 64 || candidate->program.instructions.size() > 12) return;
  const auto plan = lower(*candidate, call.collective, call.root, call.commutative, hierarchy);
  if (plan.ok())
    fuzz::require(prove(plan->semantics, plan->schedules, call.commutative).ok(), "what is lowered is right");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_text(fuzz::text_of(data, size));
  if (size > 0) check_candidate(data[0], fuzz::text_of(data + 1, size - 1));
  return 0;
}
