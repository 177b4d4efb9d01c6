#include "fused/gemv/gemv_arguments.h"

namespace plait::fused {
namespace {

// So that no product of the shape's numbers overflows.
constexpr std::int64_t most_result_rows = std::int64_t{1} << 31, most_depth = std::int64_t{1} << 31;

}  // namespace

Status read_arguments(const GemvArguments& given, GemvProblem& problem) {
  if (given.missing != nullptr) return bad_argument(given.missing, "NULL");
  if (Status status = check_within("rows", given.rows, {1, most_result_rows}); !status.ok()) return status;
  if (Status status = check_within("depth", given.depth, {0, most_depth}); !status.ok()) return status;
  if (Status status = check_within("columns", given.columns, {1, most_columns}); !status.ok()) return status;
  if (Status status = check_within("type", given.type, {0, 2}); !status.ok()) return status;
  problem.rows = given.rows;
  problem.depth = given.depth;
  problem.columns = static_cast<int>(given.columns);
  problem.type = static_cast<RowType>(given.type);
  problem.weights = static_cast<const std::byte*>(given.weights);
  if (problem.weights == nullptr && problem.depth > 0) return bad_argument("data", "NULL");
  problem.scales = given.scales;
  if (problem.scales == nullptr && problem.type == RowType::i8) return bad_argument("scales", "NULL");
  problem.output = static_cast<std::byte*>(given.output);
  if (problem.output == nullptr) return bad_argument("output", "NULL");
  Result<PlanOptions> options = parse_plan_options(given.options != nullptr ? given.options : "", HasChecks::no);
  if (!options.ok()) return options.status();
  problem.options = *options;
  return {};
}

bool complains(const GemvProblem& problem, const float* x, Complaint& complaint) {
  complaint = {};
  return x == nullptr && problem.depth > 0;
}

}  // namespace plait::fused
