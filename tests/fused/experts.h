// Tokens, experts and choices drawn from a seed, the same wherever they are drawn, and what must come of a layer of
// experts that are spread over ranks: for tests and measurements of its two halves.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/fused/matrices.h"

namespace plait::fused {

struct MoeShape {
  std::vector<std::int64_t> tokens = {}, experts = {};  // by rank
  std::int64_t choices = 2, depth = 1, columns = 1;
  std::int64_t capacity = 1;
  double skew = 0;       // 0: experts are chosen alike; more: the first ones more often
  double dropped = 0.1;  // of all choices; and what is over the capacity
  std::uint64_t seed = 1;

  int ranks() const { return static_cast<int>(tokens.size()); }
  std::int64_t all_experts() const;
  std::string text() const;
};
// So that nothing is over it.
std::int64_t ample_capacity(const MoeShape& shape);

// Of which half: what goes to the experts, or what comes from them.
enum class Half { dispatch, combine };

// What one rank has.
struct RankExperts {
  std::vector<Matrix> weights;  // by expert
  std::vector<const void*> weights_list;
  Matrix x;                           // of its tokens, or what a dispatch has left
  std::vector<std::int32_t> experts;  // by token and choice
  std::vector<float> factors;         // likewise
  std::vector<std::int64_t> counts;   // by rank and expert: what a dispatch writes
};
RankExperts make_experts(const MoeShape& shape, Half half, int rank);
// Other tokens and choices.
void draw_tokens(const MoeShape& shape, Half half, int rank, int round, RankExperts& data);

// What a rank's tokens are for the experts of another, in the order in which they go.
struct RoutedRow {
  std::int64_t entry = 0, expert = 0;  // of the other rank
};
std::vector<RoutedRow> routed_rows(const MoeShape& shape, const RankExperts& source, int owner);

// What is wrong with the output of a rank, of all of which `all` is the data; nothing: "". Rows that nothing comes to
// must still be `poison`.
std::string wrong_dispatch(const MoeShape& shape, std::span<const RankExperts> all, int rank, const float* output,
                           float poison);
std::string wrong_combine(const MoeShape& shape, std::span<const RankExperts> all, int rank, const float* output);

}  // namespace plait::fused
