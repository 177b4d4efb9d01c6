// What a program gives for a layer of experts that are spread over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/exchange/announcement.h"
#include "fused/ground/alike.h"
#include "fused/ground/plan_options.h"
#include "fused/layer.h"

namespace plait::fused {

inline constexpr std::int64_t most_choices = 64;  // of a token

// As the program gives them, of one rank.
struct MoeArguments {
  std::int64_t tokens = 0;   // of this rank
  std::int64_t choices = 0;  // experts of a token
  std::int64_t experts = 0;  // of this rank
  std::int64_t depth = 0, columns = 0;
  std::int64_t capacity = 0;             // rows that one rank has for the experts of another at most
  int type = 0;                          // PLAIT_FUSED_F32
  const void* const* weights = nullptr;  // by expert
  void* output = nullptr;
  std::int64_t* counts = nullptr;  // dispatch: what came
  const char* options = nullptr;
  const char* missing = nullptr;  // what the call lacks: "shape", "plan"
};

// The same, checked.
struct MoeProblem {
  std::int64_t tokens = 0, choices = 1, depth = 1, columns = 1, capacity = 1;
  std::vector<const float*> weights;  // by expert of this rank
  float* output = nullptr;
  std::int64_t* counts = nullptr;
  PlanOptions options;

  std::int64_t experts() const { return static_cast<std::int64_t>(weights.size()); }
  std::int64_t entries() const { return tokens * choices; }
};
enum class MoeHalf : std::uint8_t { dispatch, combine };
Status read_arguments(const MoeArguments& given, MoeHalf half, MoeProblem& problem);

// What all ranks must give alike.
std::vector<Alike> moe_alike(const MoeProblem& problem);

// What is wrong with a run, as a rank tells the others.
Complaint missing_list(const char* name);
Complaint wrong_expert(std::int64_t place, std::int64_t value, std::int64_t experts);
Complaint over_capacity(int owner, std::int64_t rows, std::int64_t capacity);
// The same in words, without the rank.
std::string moe_complaint_text(const Complaint& complaint);

}  // namespace plait::fused
