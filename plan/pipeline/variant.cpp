#include "plan/pipeline/variant.h"

#include <algorithm>
#include <utility>

#include "plan/pipeline/weight_delay.h"

namespace plait::plan {

const PipelineVariant* pipeline_variant_named(std::string_view name) {
  const auto* const found = std::find_if(pipeline_variants.begin(), pipeline_variants.end(),
                                         [&](const PipelineVariant& variant) { return variant.name == name; });
  return found == pipeline_variants.end() ? nullptr : found;
}

std::string join_pipeline_variants(std::string_view between) {
  std::string names;
  for (const PipelineVariant& variant : pipeline_variants)
    names += (names.empty() ? std::string() : std::string(between)) + std::string(variant.name);
  return names;
}

Result<PipelineEstimate> estimate_pipeline(const PipelineVariant& variant, const PipelineCase& question) {
  PipelineRequest request{.stages = question.stages, .micro_batches = question.micro_batches, .order = variant.order};
  PipelineCosts costs = question.costs;
  costs.overlap = variant.overlap;
  if (variant.delays_weights) {
    auto delays = least_weight_delays(request, costs);
    if (!delays.ok()) return delays.status();
    request.weight_delays = std::move(*delays);
  }
  auto schedule = pipeline_schedule(request);
  if (!schedule.ok()) return schedule.status();
  auto run = simulate_pipeline(*schedule, costs);
  if (!run.ok()) return run.status();
  const double least = least_pipeline_seconds(costs, request.micro_batches, variant.delays_weights);
  costs.boundaries = question.one_byte_boundaries;
  const auto one_byte = simulate_pipeline(*schedule, costs);
  if (!one_byte.ok()) return one_byte.status();
  return PipelineEstimate{std::move(request.weight_delays), std::move(*schedule), std::move(*run), one_byte->seconds,
                          least};
}

}  // namespace plait::plan
