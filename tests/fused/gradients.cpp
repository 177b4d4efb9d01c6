#include "tests/fused/gradients.h"

#include <algorithm>
#include <cmath>

#include "fused/tiles/tiles.h"

namespace plait::fused {
namespace {

std::int64_t tables_of(std::span<const RankBags> all) {
  std::int64_t tables = 0;
  for (const RankBags& bags : all) tables += bags.tables();
  return tables;
}

// Of a bag, wherever its sample is.
const float* gradient_of(const BagShape& shape, std::span<const RankBags> all,
                         std::span<const std::vector<float>> gradients, const WhichTable& which, std::int64_t bag) {
  const auto ranks = static_cast<int>(all.size());
  int owner = 0;
  while (share_of(shape.batch, ranks, owner).end <= bag) ++owner;
  const std::int64_t row = bag - share_of(shape.batch, ranks, owner).begin;
  const std::int64_t column = tables_of(all.first(static_cast<std::size_t>(which.rank))) + which.table;
  return gradients[static_cast<std::size_t>(owner)].data() + (row * tables_of(all) + column) * shape.dim;
}

}  // namespace

std::vector<float> make_gradients(const BagShape& shape, std::span<const RankBags> all, int rank, int round) {
  Random random(shape.seed * 3000 + static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(round) * 55555);
  const Range samples = share_of(shape.batch, static_cast<int>(all.size()), rank);
  std::vector<float> gradients(static_cast<std::size_t>(samples.length() * tables_of(all) * shape.dim));
  std::ranges::generate(gradients, [&] { return draw_float(random); });
  return gradients;
}

ExpectedTable expected_table(const BagShape& shape, std::span<const RankBags> all,
                             std::span<const std::vector<float>> gradients, const WhichTable& which) {
  const RankBags& bags = all[static_cast<std::size_t>(which.rank)];
  const auto number = static_cast<std::size_t>(which.table);
  const auto elements = static_cast<std::size_t>(bags.rows[number] * shape.dim);
  ExpectedTable expected;
  std::vector<double> magnitudes(elements);
  std::vector<int> terms(elements);
  for (std::size_t at = 0; at < elements; ++at) {
    expected.before.push_back(element_at(shape.type, bags.data[number].data() + at * bytes_of(shape.type)));
    magnitudes[at] = std::abs(expected.before[at]);
  }
  expected.values = expected.before;
  for (std::int64_t bag = 0; bag < shape.batch; ++bag) {
    const auto place = static_cast<std::size_t>(which.table * shape.batch + bag);
    const std::int64_t begin = bags.offsets[place], end = bags.offsets[place + 1];
    const float* gradient = gradient_of(shape, all, gradients, which, bag);
    for (std::int64_t at = begin; at < end; ++at) {
      double factor = static_cast<double>(which.factor);
      if (shape.mean) factor /= static_cast<double>(end - begin);
      if (shape.weighted) factor *= static_cast<double>(bags.weights[static_cast<std::size_t>(at)]);
      for (std::int64_t column = 0; column < shape.dim; ++column) {
        const auto to = static_cast<std::size_t>(bags.indices[static_cast<std::size_t>(at)] * shape.dim + column);
        const double term = factor * static_cast<double>(gradient[column]);
        expected.values[to] += term;
        magnitudes[to] += std::abs(term);
        ++terms[to];
      }
    }
  }
  const double rounding = 4 * std::pow(2.0, -24) + (shape.type == RowType::bf16 ? std::pow(2.0, -8) : 0);
  for (std::size_t at = 0; at < elements; ++at) expected.bounds.push_back(terms[at] * rounding * magnitudes[at]);
  return expected;
}

std::string wrong_table(const BagShape& shape, const ExpectedTable& expected, const OutputRows& columns,
                        const std::byte* table) {
  for (std::size_t at = 0; at < expected.values.size(); ++at) {
    const auto column = static_cast<std::int64_t>(at) % shape.dim;
    const bool stays = column < columns.begin || column >= columns.end;
    const double value = element_at(shape.type, table + at * bytes_of(shape.type));
    if (stays ? value == expected.before[at] : std::abs(value - expected.values[at]) <= expected.bounds[at]) continue;
    return "row " + std::to_string(static_cast<std::int64_t>(at) / shape.dim) + ", column " + std::to_string(column) +
           ": " + std::to_string(value) + ", expected " + std::to_string(expected.values[at]);
  }
  return {};
}

}  // namespace plait::fused
