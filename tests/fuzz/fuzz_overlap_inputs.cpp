// Layer tables and contention files that are read come back from what is written of them, and can be planned with.
#include <cmath>

#include "plan/overlap/contention_fit.h"
#include "plan/overlap/layers.h"
#include "plan/overlap/overlap_planner.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;
using namespace plait::plan;

namespace {

void check_layers(const LayerTable& table) {
  const std::string written = layers_json(table);
  const Result<LayerTable> again = parse_layers(written);
  fuzz::require(again.ok() && layers_json(*again) == written, "what is written is that table");
  const BackwardPass pass = backward_pass(table);
  fuzz::require(pass.bytes.size() == overlap_calls(table).size() && !pass.bytes.empty(), "layers have calls");
  fuzz::require(std::isfinite(pass.total()) && pass.total() > 0, "a pass computes");
  if (pass.bytes.size() > 16) return;
  const OverlapModel model = {
      .shares = {{1, 0.5}, {1, 1}},
      .slowdown = {1.1, 1.5},
      .overlapped = [](double bytes, std::size_t r) { return 1e-3 + bytes * (r ? 1e-9 : 3e-9); },
      .alone = [](double bytes, std::size_t) { return 1e-3 + bytes * 1e-9; }};
  const OverlapComparison comparison = compare_overlap(pass, model, {.groups = 3, .chunks = 10}, 1e-3);
  const OverlapPlan plan = overlap_plan_of(table, {}, comparison.best());
  fuzz::require(parse_overlap_plan(overlap_plan_json(plan)).ok(), "a plan is one");
}

void check_contention(const Contention& contention) {
  const std::string written = contention_json(contention);
  const Result<Contention> again = parse_contention(written);
  fuzz::require(again.ok() && contention_json(*again) == written, "what is written is that file");
  const ReductionCosts costs =
      contention.reductions.empty() ? ring_costs(2, contention.latency) : interpolated(contention.reductions);
  const Result<OverlapModel> model = overlap_model(contention, known_shares(contention), costs);
  if (model.ok()) fuzz::require(model->overlapped(1000, 0) > 0 && model->slowdown[0] > 0, "times are positive");
  if (contention.samples.size() <= 8) (void)fit_contention(contention.samples, costs, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<LayerTable> table = parse_layers(fuzz::text_of(data, size));
  if (table.ok()) check_layers(*table);
  const Result<Contention> contention = parse_contention(fuzz::text_of(data, size));
  if (contention.ok()) check_contention(*contention);
  fuzz::require(table.ok() || !table.status().message().empty(), "a refusal says why");
  return 0;
}
