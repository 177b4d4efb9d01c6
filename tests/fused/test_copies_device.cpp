// Operators without kernels for devices, or where these are not to be used, whose data are on one: the processor
// computes with copies. All numbers are small integers, so that all sums are exact.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fused/embedding/embedding_back.h"
#include "fused/gemm/all_gather.h"
#include "fused/moe/combine.h"
#include "fused/moe/dispatch.h"
#include "tests/fused/device_ranks.h"

namespace plait::fused {
namespace {

constexpr int copy_ranks = 3;
constexpr std::int64_t depth = 5, columns = 4, all_rows = 11;

// Row after row; `a` from a row on, times `b`.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, const Range& rows) {
  std::vector<float> made;
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::int64_t at = 0; at < depth; ++at)
        sum += a[static_cast<std::size_t>(row * depth + at)] * b[static_cast<std::size_t>(at * columns + column)];
      made.push_back(sum);
    }
  return made;
}

class CopiesOfDevices : public DeviceRanks {
 protected:
  static std::string on_ranks(const std::function<std::string(const Here&)>& work) {
    return DeviceRanks::on_ranks(copy_ranks, direct_always, work);
  }
};

TEST_F(CopiesOfDevices, AllGatherAndProduct) {
  EXPECT_EQ(
      DeviceRanks::on_ranks(copy_ranks, direct_never,
                            [](const Here& here) -> std::string {
                              const Range rows = share_of(all_rows, copy_ranks, here.rank);
                              const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, depth * columns));
                              const DeviceCopy output(all_rows * columns * sizeof(float));
                              const DeviceCopy x(static_cast<std::size_t>(rows.length() * depth) * sizeof(float));
                              auto made = AllGatherGemm::make(here.all,
                                                              {.rows = all_rows,
                                                               .depth = depth,
                                                               .columns = columns,
                                                               .weights = weights.address<void>(),
                                                               .output = output.address<void>()},
                                                              here.members);
                              if (!made.ok()) return made.status().message();
                              return run(
                                  **made, output,
                                  [&](int round) {
                                    x.write(numbers(seed(0, round), all_rows * depth).data() + rows.begin * depth);
                                    return (*made)->start(x.address<float>());
                                  },
                                  [&](int round) {
                                    return product(numbers(seed(0, round), all_rows * depth),
                                                   numbers(here.rank, depth * columns), {0, all_rows});
                                  });
                            }),
      "");
}

// A row a sample, each rank's table has two, and sample s looks up row s % 2 of each.
TEST_F(CopiesOfDevices, GradientsAreAddedWhereTheTablesAre) {
  constexpr std::int64_t dim = 4, rows = 2;
  EXPECT_EQ(on_ranks([](const Here& here) -> std::string {
              const Range samples = share_of(all_rows, copy_ranks, here.rank);
              const std::int64_t table_rows = rows;
              const DeviceCopy table(rows * dim * sizeof(float));
              const std::vector<float> all = numbers(1, all_rows * copy_ranks * dim);
              std::vector<float> own(all.begin() + samples.begin * copy_ranks * dim,
                                     all.begin() + samples.end * copy_ranks * dim);
              const DeviceCopy gradients = DeviceCopy::of(own);
              std::vector<std::int64_t> looked_up, bounds;
              for (std::int64_t sample = 0; sample <= all_rows; ++sample) bounds.push_back(sample);
              for (std::int64_t sample = 0; sample < all_rows; ++sample) looked_up.push_back(sample % rows);
              const DeviceCopy indices = DeviceCopy::of(looked_up), offsets = DeviceCopy::of(bounds);
              void* place = table.address<void>();
              auto made = EmbeddingBack::make(here.all,
                                              {.direction = Direction::back,
                                               .batch = all_rows,
                                               .dim = dim,
                                               .tables = 1,
                                               .rows = &table_rows,
                                               .data = &place,
                                               .targets = &place,
                                               .gradients = gradients.address<float>()},
                                              here.members);
              if (!made.ok()) return made.status().message();
              const std::vector<float> before = numbers(here.rank, rows * dim);
              return run(
                  **made, table,
                  [&](int) {
                    table.write(before.data());
                    return (*made)->start({.indices = indices.address<std::int64_t>(),
                                           .count = all_rows,
                                           .offsets = offsets.address<std::int64_t>()},
                                          2);
                  },
                  [&](int) {
                    std::vector<float> after = before;
                    for (std::int64_t sample = 0; sample < all_rows; ++sample)
                      for (std::int64_t column = 0; column < dim; ++column)
                        after[static_cast<std::size_t>(sample % rows * dim + column)] +=
                            2 * all[static_cast<std::size_t>((sample * copy_ranks + here.rank) * dim + column)];
                    return after;
                  });
            }),
            "");
}

// Each rank has an expert and a token for each, in the order of the experts.
TEST_F(CopiesOfDevices, TokensToExpertsAndBack) {
  EXPECT_EQ(on_ranks([](const Here& here) -> std::string {
              constexpr std::int64_t capacity = 2;
              const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, depth * columns));
              const void* place = weights.address<void>();
              std::vector<std::int32_t> chosen;
              for (int of = 0; of < copy_ranks; ++of) chosen.push_back(of);
              const DeviceCopy experts = DeviceCopy::of(chosen), counts(copy_ranks * sizeof(std::int64_t));
              const DeviceCopy factors = DeviceCopy::of(std::vector<float>(copy_ranks, 1));
              const DeviceCopy x = DeviceCopy::of(numbers(seed(here.rank, 0), copy_ranks * depth));
              const DeviceCopy there(copy_ranks * capacity * columns * sizeof(float));
              there.fill(0);
              MoeArguments arguments{.tokens = copy_ranks,
                                     .choices = 1,
                                     .experts = 1,
                                     .depth = depth,
                                     .columns = columns,
                                     .capacity = capacity,
                                     .weights = &place,
                                     .output = there.address<void>(),
                                     .counts = counts.address<std::int64_t>()};
              auto dispatch = MoeDispatch::make(here.all, arguments, here.members);
              if (!dispatch.ok()) return dispatch.status().message();
              Status status = (*dispatch)->start({x.address<float>(), experts.address<std::int32_t>()});
              if (status.ok()) status = (*dispatch)->wait();
              // What came: a token of each rank, and behind it what nothing has come for.
              std::vector<float> expected;
              for (int of = 0; of < copy_ranks; ++of) {
                const std::vector<float> row = product(numbers(seed(of, 0), copy_ranks * depth),
                                                       numbers(here.rank, depth * columns), {here.rank, here.rank + 1});
                expected.insert(expected.end(), row.begin(), row.end());
                expected.resize(expected.size() + columns);
              }
              std::string wrong = status.message();
              if (wrong.empty() && there.read<float>() != expected) wrong = "what came to the experts";
              if (wrong.empty() && counts.read<std::int64_t>() != std::vector<std::int64_t>(copy_ranks, 1))
                wrong = "the counts";
              // Back: experts' rows are `depth` long here, so another input, and each token's product.
              const DeviceCopy results = DeviceCopy::of(numbers(seed(here.rank, 1), copy_ranks * capacity * depth));
              const DeviceCopy output(copy_ranks * columns * sizeof(float));
              arguments.output = output.address<void>();
              arguments.counts = nullptr;
              auto combine = MoeCombine::make(here.all, arguments, here.members);
              if (!combine.ok()) return combine.status().message();
              status = (*combine)->start(
                  {results.address<float>(), experts.address<std::int32_t>(), factors.address<float>()});
              if (status.ok()) status = (*combine)->wait();
              expected.clear();
              for (int of = 0; of < copy_ranks; ++of) {
                const std::int64_t row = here.rank * capacity;
                const std::vector<float> one = product(numbers(seed(of, 1), copy_ranks * capacity * depth),
                                                       numbers(of, depth * columns), {row, row + 1});
                expected.insert(expected.end(), one.begin(), one.end());
              }
              if (wrong.empty()) wrong = status.message();
              if (wrong.empty() && output.read<float>() != expected) wrong = "what came back";
              return wrong;
            }),
            "");
}

}  // namespace
}  // namespace plait::fused
