// What a program gives for a product whose depth is spread over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/status.h"
#include "fused/exchange/announcement.h"
#include "fused/ground/plan_options.h"
#include "fused/kernels/gemv.h"
#include "fused/layer.h"

namespace plait::fused {

// As the program gives them, of one rank.
struct GemvArguments {
  std::int64_t rows = 0;   // of the result
  std::int64_t depth = 0;  // of this rank's weights: elements of a row
  std::int64_t columns = 0;
  int type = 0;  // PLAIT_FUSED_F32 and so on
  const void* weights = nullptr;
  const float* scales = nullptr;  // i8: by row
  void* output = nullptr;
  const char* options = nullptr;
  const char* missing = nullptr;  // what the call lacks: "shape", "plan"
};

// The same, checked.
struct GemvProblem {
  std::int64_t rows = 0, depth = 0;
  int columns = 1;
  RowType type = RowType::f32;
  const std::byte* weights = nullptr;
  const float* scales = nullptr;
  std::byte* output = nullptr;
  PlanOptions options;

  // Of all columns of a row of the result; of a column of some rows.
  std::size_t cell_bytes() const { return static_cast<std::size_t>(columns) * sizeof(float); }
  std::size_t row_bytes() const { return static_cast<std::size_t>(depth) * bytes_of(type); }
};
Status read_arguments(const GemvArguments& given, GemvProblem& problem);

// What is wrong with a run's vectors, as a rank tells the others; false: nothing.
bool complains(const GemvProblem& problem, const float* x, Complaint& complaint);

}  // namespace plait::fused
