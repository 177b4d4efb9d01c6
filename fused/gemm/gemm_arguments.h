// What a program gives for a product of matrices and its collective.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "fused/ground/plan_options.h"
#include "fused/layer.h"

namespace plait::fused {

// As the program gives them, of one rank.
struct GemmArguments {
  std::int64_t rows = 0;   // of all ranks together
  std::int64_t depth = 0;  // of this rank's weights: their rows
  std::int64_t columns = 0;
  int type = 0;  // PLAIT_FUSED_F32
  const void* weights = nullptr;
  void* output = nullptr;
  const char* options = nullptr;
  const char* missing = nullptr;  // what the call lacks: "shape", "plan"
};

// The same, checked.
struct GemmProblem {
  std::int64_t rows = 0, depth = 0, columns = 0;
  const float* weights = nullptr;
  float* output = nullptr;
  PlanOptions options;

  std::uint64_t weights_bytes() const { return static_cast<std::uint64_t>(depth) * output_pitch(); }
  std::uint64_t output_pitch() const { return static_cast<std::uint64_t>(columns) * sizeof(float); }
  std::uint64_t input_pitch() const { return static_cast<std::uint64_t>(depth) * sizeof(float); }
};

// What is the least that the depth and the columns may be: a rank may have nothing of what is spread over the ranks.
struct GemmLeast {
  std::int64_t depth = 1, columns = 1;
};
Status read_arguments(const GemmArguments& given, const GemmLeast& least, GemmProblem& problem);

}  // namespace plait::fused
