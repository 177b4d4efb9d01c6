#include "tests/fused/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/fused/elements.h"

namespace plait::fused {
namespace {

std::uint64_t seed_of(const MoeShape& shape, int rank, int round) {
  return shape.seed * 1000 + static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(round + 1) * 77777;
}

double draw_share(Random& random) { return static_cast<double>(draw(random, 0, 999'999)) / 1e6; }

int owner_of(const MoeShape& shape, std::int64_t expert) {
  int owner = 0;
  for (; expert >= shape.experts[static_cast<std::size_t>(owner)]; ++owner)
    expert -= shape.experts[static_cast<std::size_t>(owner)];
  return owner;
}

std::int64_t first_expert(const MoeShape& shape, int owner) {
  return std::accumulate(shape.experts.begin(), shape.experts.begin() + owner, std::int64_t{0});
}

}  // namespace

std::int64_t MoeShape::all_experts() const { return first_expert(*this, ranks()); }

std::string MoeShape::text() const {
  std::string text = "choices " + std::to_string(choices) + ", " + std::to_string(depth) + " x " +
                     std::to_string(columns) + ", capacity " + std::to_string(capacity);
  for (std::size_t rank = 0; rank < tokens.size(); ++rank)
    text += ", " + std::to_string(tokens[rank]) + " tokens and " + std::to_string(experts[rank]) + " experts";
  return text;
}

std::int64_t ample_capacity(const MoeShape& shape) {
  return std::max<std::int64_t>(std::ranges::max(shape.tokens) * shape.choices, 1);
}

RankExperts make_experts(const MoeShape& shape, Half half, int rank) {
  RankExperts made;
  const auto at = static_cast<std::size_t>(rank);
  for (std::int64_t expert = 0; expert < shape.experts[at]; ++expert)
    made.weights.push_back(
        draw_matrix(shape.depth, shape.columns, seed_of(shape, rank, -1) + static_cast<std::uint64_t>(expert) * 31));
  for (const Matrix& weights : made.weights) made.weights_list.push_back(weights.elements.data());
  made.counts.resize(static_cast<std::size_t>(shape.ranks() * shape.experts[at]));
  draw_tokens(shape, half, rank, 0, made);
  return made;
}

void draw_tokens(const MoeShape& shape, Half half, int rank, int round, RankExperts& data) {
  Random random(seed_of(shape, rank, round));
  const std::int64_t tokens = shape.tokens[static_cast<std::size_t>(rank)], all = shape.all_experts();
  data.x = draw_matrix(half == Half::dispatch ? tokens : shape.ranks() * shape.capacity, shape.depth, random());
  data.experts.clear();
  data.factors.clear();
  std::vector<std::int64_t> rows(shape.tokens.size());
  for (std::int64_t entry = 0; entry < tokens * shape.choices; ++entry) {
    data.factors.push_back(draw_float(random));
    const double place = std::pow(draw_share(random), 1 + shape.skew);
    auto expert = static_cast<std::int32_t>(place * static_cast<double>(all));
    if (draw_share(random) < shape.dropped || all == 0) expert = -1;
    if (expert >= 0 && ++rows[static_cast<std::size_t>(owner_of(shape, expert))] > shape.capacity) expert = -1;
    data.experts.push_back(expert);
  }
}

std::vector<RoutedRow> routed_rows(const MoeShape& shape, const RankExperts& source, int owner) {
  std::vector<RoutedRow> rows;
  for (std::int64_t expert = 0; expert < shape.experts[static_cast<std::size_t>(owner)]; ++expert)
    for (std::size_t entry = 0; entry < source.experts.size(); ++entry)
      if (source.experts[entry] == first_expert(shape, owner) + expert)
        rows.push_back({static_cast<std::int64_t>(entry), expert});
  return rows;
}

std::string wrong_dispatch(const MoeShape& shape, std::span<const RankExperts> all, int rank, const float* output,
                           float poison) {
  const RankExperts& own = all[static_cast<std::size_t>(rank)];
  std::vector<std::int64_t> counts(own.counts.size());
  for (int source = 0; source < shape.ranks(); ++source) {
    const RankExperts& from = all[static_cast<std::size_t>(source)];
    const std::vector<RoutedRow> rows = routed_rows(shape, from, rank);
    ExpectedMatrix expected(static_cast<std::int64_t>(rows.size()), shape.columns);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto expert = static_cast<std::size_t>(rows[row].expert);
      expected.add_row(static_cast<std::int64_t>(row), from.x.row(rows[row].entry / shape.choices),
                       own.weights[expert]);
      ++counts[static_cast<std::size_t>(source) * own.weights.size() + expert];
    }
    const float* begin = output + source * shape.capacity * shape.columns;
    const float* end = begin + static_cast<std::int64_t>(rows.size()) * shape.columns;
    if (std::string wrong = expected.compare(begin, 2 * shape.depth); !wrong.empty())
      return "of rank " + std::to_string(source) + ", " + wrong;
    if (!own.weights.empty() &&
        std::any_of(end, begin + shape.capacity * shape.columns, [poison](float value) { return value != poison; }))
      return "of rank " + std::to_string(source) + ": rows that nothing came to are written";
  }
  return counts == own.counts ? "" : "the counts are wrong";
}

std::string wrong_combine(const MoeShape& shape, std::span<const RankExperts> all, int rank, const float* output) {
  const RankExperts& own = all[static_cast<std::size_t>(rank)];
  ExpectedMatrix expected(shape.tokens[static_cast<std::size_t>(rank)], shape.columns);
  for (int owner = 0; owner < shape.ranks(); ++owner) {
    const RankExperts& from = all[static_cast<std::size_t>(owner)];
    const std::vector<RoutedRow> rows = routed_rows(shape, own, owner);
    for (std::size_t row = 0; row < rows.size(); ++row)
      expected.add_row(rows[row].entry / shape.choices,
                       from.x.row(rank * shape.capacity + static_cast<std::int64_t>(row)),
                       from.weights[static_cast<std::size_t>(rows[row].expert)],
                       static_cast<double>(own.factors[static_cast<std::size_t>(rows[row].entry)]));
  }
  return expected.compare(output, 2 * shape.depth + 2 * shape.choices);
}

}  // namespace plait::fused
