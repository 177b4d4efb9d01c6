#include "fused/moe/moe_arguments.h"

#include <cstring>
#include <string_view>

namespace plait::fused {
namespace {

// So that no product of the shape's numbers overflows, and each is an int of a library's.
constexpr std::int64_t most_tokens = std::int64_t{1} << 24, most_experts = std::int64_t{1} << 16;
constexpr std::int64_t most_side = std::int64_t{1} << 24, most_capacity = std::int64_t{1} << 30;

// What a complaint is about: the first of its words; the other words follow.
enum class Wrong : std::int64_t { missing, expert, capacity };

Status read_weights(const MoeArguments& given, MoeProblem& problem) {
  if (given.experts > 0 && given.weights == nullptr) return bad_argument("data", "NULL");
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(given.experts); ++expert) {
    if (given.weights[expert] == nullptr) return bad_argument("data[" + std::to_string(expert) + "]", "NULL");
    problem.weights.push_back(static_cast<const float*>(given.weights[expert]));
  }
  return {};
}

Status read_shape(const MoeArguments& given, MoeProblem& problem) {
  if (Status status = check_within("tokens", given.tokens, {0, most_tokens}); !status.ok()) return status;
  if (Status status = check_within("choices", given.choices, {1, most_choices}); !status.ok()) return status;
  if (Status status = check_within("experts", given.experts, {0, most_experts}); !status.ok()) return status;
  if (Status status = check_within("depth", given.depth, {1, most_side}); !status.ok()) return status;
  if (Status status = check_within("columns", given.columns, {1, most_side}); !status.ok()) return status;
  if (Status status = check_within("capacity", given.capacity, {1, most_capacity}); !status.ok()) return status;
  if (Status status = check_within("type", given.type, {0, 0}); !status.ok()) return status;
  problem.tokens = given.tokens;
  problem.choices = given.choices;
  problem.depth = given.depth;
  problem.columns = given.columns;
  problem.capacity = given.capacity;
  return {};
}

}  // namespace

Status read_arguments(const MoeArguments& given, MoeHalf half, MoeProblem& problem) {
  if (given.missing != nullptr) return bad_argument(given.missing, "NULL");
  if (Status status = read_shape(given, problem); !status.ok()) return status;
  if (Status status = read_weights(given, problem); !status.ok()) return status;
  const bool dispatches = half == MoeHalf::dispatch;
  problem.output = static_cast<float*>(given.output);
  if (problem.output == nullptr && (dispatches ? problem.experts() : problem.tokens) > 0)
    return bad_argument("output", "NULL");
  problem.counts = given.counts;
  if (problem.counts == nullptr && dispatches && problem.experts() > 0) return bad_argument("counts", "NULL");
  Result<PlanOptions> options = parse_plan_options(given.options != nullptr ? given.options : "", HasChecks::no);
  if (!options.ok()) return options.status();
  problem.options = *options;
  return {};
}

std::vector<Alike> moe_alike(const MoeProblem& problem) {
  return {{"choices", problem.choices},
          {"depth", problem.depth},
          {"columns", problem.columns},
          {"capacity", problem.capacity},
          {"slice=", static_cast<std::int64_t>(problem.options.slice_bytes)}};
}

// The name is in the words: it is short.
Complaint missing_list(const char* name) {
  Complaint complaint{.words = {static_cast<std::int64_t>(Wrong::missing)}};
  std::memcpy(&complaint.words[1], name, std::min(std::strlen(name), sizeof complaint.words[1]));
  return complaint;
}

Complaint wrong_expert(std::int64_t place, std::int64_t value, std::int64_t experts) {
  return {.words = {static_cast<std::int64_t>(Wrong::expert), place, value, experts, 0}};
}

Complaint over_capacity(int owner, std::int64_t rows, std::int64_t capacity) {
  return {.words = {static_cast<std::int64_t>(Wrong::capacity), owner, rows, capacity, 0}};
}

std::string moe_complaint_text(const Complaint& complaint) {
  const auto& words = complaint.words;
  switch (static_cast<Wrong>(words[0])) {
    case Wrong::missing: {
      std::string name(reinterpret_cast<const char*>(&words[1]), sizeof words[1]);
      return name.substr(0, name.find('\0')) + ": NULL";
    }
    case Wrong::expert:
      return "experts[" + std::to_string(words[1]) + "]: " + std::to_string(words[2]) + ": expected -1, for none, to " +
             std::to_string(words[3] - 1);
    case Wrong::capacity:
      break;
  }
  return "experts: " + std::to_string(words[2]) + " rows for experts of rank " + std::to_string(words[1]) +
         ": expected at most " + std::to_string(words[3]) + ", the capacity";
}

}  // namespace plait::fused
