#include "tests/fused/bags.h"

#include <cmath>

#include "tests/fused/elements.h"

namespace plait::fused {

RankBags make_bags(const BagShape& shape, std::int64_t tables, int rank) {
  Random random(shape.seed * 1000 + static_cast<std::uint64_t>(rank));
  RankBags bags;
  for (std::int64_t table = 0; table < tables; ++table) {
    bags.rows.push_back(draw(random, 1, shape.most_rows));
    const auto elements = static_cast<std::size_t>(bags.rows.back() * shape.dim);
    bags.data.emplace_back(elements * bytes_of(shape.type));
    for (std::size_t i = 0; i < elements; ++i)
      put_element(shape.type, random, bags.data.back().data() + i * bytes_of(shape.type));
    bags.scales.emplace_back();
    for (std::int64_t row = 0; row < bags.rows.back(); ++row) bags.scales.back().push_back(draw_float(random));
  }
  for (const auto& data : bags.data) bags.data_list.push_back(data.data());
  for (const auto& scales : bags.scales) bags.scales_list.push_back(scales.data());
  draw_lookups(shape, rank, 0, bags);
  return bags;
}

void draw_lookups(const BagShape& shape, int rank, int round, RankBags& bags) {
  Random random(shape.seed * 1000 + static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(round + 1) * 77777);
  bags.indices.clear();
  bags.weights.clear();
  bags.offsets.assign(1, 0);
  for (const std::int64_t rows : bags.rows)
    for (std::int64_t bag = 0; bag < shape.batch; ++bag) {
      const std::int64_t length = draw(random, 0, 3) == 0 ? 0 : draw(random, 0, shape.longest_bag);
      for (std::int64_t i = 0; i < length; ++i) {
        bags.indices.push_back(draw(random, 0, rows - 1));
        bags.weights.push_back(draw_float(random));
      }
      bags.offsets.push_back(static_cast<std::int64_t>(bags.indices.size()));
    }
}

ExpectedElement expected_element(const BagShape& shape, const RankBags& bags, std::int64_t table, std::int64_t bag,
                                 std::int64_t column) {
  const auto number = static_cast<std::size_t>(table);
  const auto place = static_cast<std::size_t>(table * shape.batch + bag);
  const std::int64_t begin = bags.offsets[place], end = bags.offsets[place + 1];
  double sum = 0, magnitude = 0;
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t row = bags.indices[static_cast<std::size_t>(at)];
    double term = element_at(shape.type, bags.data[number].data() +
                                             static_cast<std::size_t>(row * shape.dim + column) * bytes_of(shape.type));
    if (shape.type == RowType::i8) term *= static_cast<double>(bags.scales[number][static_cast<std::size_t>(row)]);
    if (shape.weighted) term *= static_cast<double>(bags.weights[static_cast<std::size_t>(at)]);
    sum += term;
    magnitude += std::abs(term);
  }
  const auto terms = static_cast<double>(end - begin);
  const double share = shape.mean && end > begin ? 1 / terms : 1;
  return {.value = sum * share, .bound = magnitude * share * (2 * terms + 1) * std::pow(2.0, -24)};
}

std::string wrong_output(const BagShape& shape, std::span<const RankBags> all, const OutputRows& rows,
                         const float* output) {
  for (std::int64_t bag = rows.begin; bag < rows.end; ++bag)
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      for (std::int64_t table = 0; table < all[rank].tables(); ++table)
        for (std::int64_t column = 0; column < shape.dim; ++column, ++output) {
          const ExpectedElement expected = expected_element(shape, all[rank], table, bag, column);
          if (std::abs(static_cast<double>(*output) - expected.value) <= expected.bound) continue;
          return "sample " + std::to_string(bag) + ", rank " + std::to_string(rank) + "'s table " +
                 std::to_string(table) + ", column " + std::to_string(column) + ": " + std::to_string(*output) +
                 ", expected " + std::to_string(expected.value);
        }
  return {};
}

}  // namespace plait::fused
