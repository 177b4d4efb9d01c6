// What a program gives for an embedding bag whose tables are spread over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "fused/device/plan_data.h"
#include "fused/exchange/announcement.h"
#include "fused/ground/alike.h"
#include "fused/ground/plan_options.h"
#include "fused/kernels/pooling.h"
#include "fused/layer.h"

namespace plait::fused {

// Forward: bags to the ranks that own their samples. Back: the bags' gradients to the tables.
enum class Direction : std::uint8_t { forward, back };

// As the program gives them, of one rank.
struct EmbeddingArguments {
  Direction direction = Direction::forward;
  std::int64_t batch = 0;  // of all ranks together
  std::int64_t dim = 0;    // columns of every table
  std::int64_t tables = 0;
  const std::int64_t* rows = nullptr;    // by table
  const void* const* data = nullptr;     // likewise
  void* const* targets = nullptr;        // back: likewise, the same places
  const float* const* scales = nullptr;  // likewise: i8
  int type = 0, mode = 0;                // PLAIT_FUSED_F32 and so on
  bool weighted = false;
  void* output = nullptr;            // forward
  const float* gradients = nullptr;  // back
  const char* options = nullptr;
  const char* missing = nullptr;  // what the call lacks: "shape", "plan"
};

struct Table {
  std::int64_t rows = 0;
  const std::byte* data = nullptr;
  std::byte* target = nullptr;  // back: the same place
  const float* scales = nullptr;
};

// The same, checked.
struct EmbeddingProblem {
  std::int64_t batch = 0, dim = 0;
  RowType type = RowType::f32;
  bool mean = false, weighted = false;
  std::vector<Table> tables;
  std::byte* output = nullptr;           // forward
  const std::byte* gradients = nullptr;  // back
  PlanOptions options;

  std::size_t cell_bytes() const { return static_cast<std::size_t>(dim) * sizeof(float); }
};
Status read_arguments(const EmbeddingArguments& given, int ranks, int rank, EmbeddingProblem& problem);

// What all ranks must give alike.
std::vector<Alike> alike_of(const EmbeddingProblem& problem);

// All of the program's memory in it. `end_bytes`: of the output or the gradients.
void visit_problem(EmbeddingProblem& problem, std::uint64_t end_bytes, DataVisitor& visit);

// What is looked up in one run: the bags of all tables, table after table. Bag b of table t has the indices from
// offsets[t * batch + b] to the next offset; there are tables * batch + 1 of these.
struct Lookup {
  const std::int64_t* indices = nullptr;
  std::int64_t count = 0;  // of the indices
  const std::int64_t* offsets = nullptr;
  const float* weights = nullptr;  // by index
};

// The same where the processor finds it.
Lookup brought_lookup(const EmbeddingProblem& problem, const Lookup& lookup, BroughtData& brought);

// What is wrong with it, as a rank tells the others; false: nothing.
bool complains(const EmbeddingProblem& problem, const Lookup& lookup, Complaint& complaint);
// The same in words, without the rank.
std::string lookup_complaint_text(const Complaint& complaint);

}  // namespace plait::fused
