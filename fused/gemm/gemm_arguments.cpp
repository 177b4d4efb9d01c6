#include "fused/gemm/gemm_arguments.h"

namespace plait::fused {
namespace {

// So that no product of the shape's numbers overflows, and each is an int of a library's.
constexpr std::int64_t most_rows = std::int64_t{1} << 30, most_side = std::int64_t{1} << 30;

}  // namespace

Status read_arguments(const GemmArguments& given, const GemmLeast& least, GemmProblem& problem) {
  if (given.missing != nullptr) return bad_argument(given.missing, "NULL");
  if (Status status = check_within("rows", given.rows, {1, most_rows}); !status.ok()) return status;
  if (Status status = check_within("depth", given.depth, {least.depth, most_side}); !status.ok()) return status;
  if (Status status = check_within("columns", given.columns, {least.columns, most_side}); !status.ok()) return status;
  if (Status status = check_within("type", given.type, {0, 0}); !status.ok()) return status;
  problem.rows = given.rows;
  problem.depth = given.depth;
  problem.columns = given.columns;
  problem.weights = static_cast<const float*>(given.weights);
  if (problem.weights == nullptr && problem.depth > 0 && problem.columns > 0) return bad_argument("data", "NULL");
  problem.output = static_cast<float*>(given.output);
  if (problem.output == nullptr && problem.columns > 0) return bad_argument("output", "NULL");
  Result<PlanOptions> options = parse_plan_options(given.options != nullptr ? given.options : "", HasChecks::no);
  if (!options.ok()) return options.status();
  problem.options = *options;
  return {};
}

}  // namespace plait::fused
