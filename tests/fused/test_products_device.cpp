// Products whose data are on a device, beside what the processor makes of the same: rows times vectors with their sum
// over all ranks, and products of matrices with their reduce-scatter. Every element of every output.
#include <bit>
#include <cstring>
#include <random>

#include "fused/gemm/reduce_scatter.h"
#include "fused/gemv/gemv.h"
#include "tests/fused/device_ranks.h"

namespace plait::fused {
namespace {

struct ProductCase {
  int ranks = 3;
  std::int64_t rows = 11, columns = 1;
  std::vector<std::int64_t> depths;  // by rank
  RowType type = RowType::f32;
  std::size_t direct_from = direct_always;
  bool host_x = false;
  int host_rank = -1;      // whose output is the processor's
  std::size_t offset = 0;  // of all data, in their allocations
  std::string options = {};

  std::int64_t depth(int rank) const { return depths[static_cast<std::size_t>(rank) % depths.size()]; }
  bool on_devices() const { return direct_from == direct_always && host_rank < 0; }
};

std::string described(const ProductCase& given) {
  return std::to_string(given.ranks) + " ranks, " + std::to_string(given.rows) + " rows, " +
         std::to_string(given.columns) + " columns, type " + std::to_string(static_cast<int>(given.type)) +
         ", offset " + std::to_string(given.offset) + ", " + given.options;
}

// The numbers as a type has them: all are small integers.
std::vector<std::byte> as_rows(const std::vector<float>& list, RowType type) {
  std::vector<std::byte> bytes(list.size() * bytes_of(type));
  for (std::size_t at = 0; at < list.size(); ++at) {
    const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(list[at]) >> 16);
    const auto whole = static_cast<std::int8_t>(list[at]);
    if (type == RowType::f32) std::memcpy(&bytes[at * 4], &list[at], 4);
    if (type == RowType::bf16) std::memcpy(&bytes[at * 2], &upper, 2);
    if (type == RowType::i8) std::memcpy(&bytes[at], &whole, 1);
  }
  return bytes;
}
float scale(std::int64_t row) { return static_cast<float>(1 << (row % 3)); }

// An output on the device or the processor's.
class Output {
 public:
  Output(std::size_t floats, bool on_host, std::size_t offset)
      : there_(floats * sizeof(float), offset), here_(floats), on_host_(on_host) {}
  void* address() { return on_host_ ? here_.data() : there_.address<void>(); }
  std::vector<float> read() const { return on_host_ ? here_ : there_.read<float>(); }
  void spoil() {
    there_.fill(0xa5);
    std::ranges::fill(here_, -7.0f);
  }

 private:
  DeviceCopy there_;
  std::vector<float> here_;
  bool on_host_;
};

// One rank's x: on the device, or the processor's.
class Input {
 public:
  Input(std::size_t floats, const ProductCase& given)
      : there_(floats * sizeof(float), given.offset), here_(floats), on_host_(given.host_x) {}
  const float* write(const std::vector<float>& list) {
    here_ = list;
    there_.write(list.data());
    return on_host_ ? here_.data() : there_.address<float>();
  }

 private:
  DeviceCopy there_;
  std::vector<float> here_;
  bool on_host_;
};

template <class Plan>
std::string run_rounds(const ProductCase& given, Plan& plan, Output& output, const std::function<Status(int)>& start,
                       const std::function<std::vector<float>(int)>& expected) {
  const bool on_devices = plan.description().find("\"on\": \"devices\"") != std::string::npos;
  std::string first = on_devices == given.on_devices() ? "" : plan.description();
  for (int round = 0; round < 3; ++round) {
    output.spoil();
    Status status = start(round);
    if (status.ok()) status = plan.wait();
    const bool right = status.ok() && output.read() == expected(round);
    if (!right && first.empty()) first = "round " + std::to_string(round) + ": wrong " + status.message();
  }
  return first;
}

std::vector<ProductCase> drawn_cases(int count, std::int64_t most_rows, std::int64_t most_columns) {
  std::mt19937_64 random(test_seed());
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  std::vector<ProductCase> cases;
  for (int at = 0; at < count; ++at) {
    ProductCase one{.ranks = std::array{1, 2, 3, 5, 7}[static_cast<std::size_t>(draw(0, 4))],
                    .rows = draw(1, most_rows),
                    .columns = draw(1, most_columns),
                    .depths = {draw(0, 40), 16 * draw(0, 3), draw(1, 20)},
                    .type = static_cast<RowType>(draw(0, 2)),
                    .direct_from = draw(0, 4) == 0 ? direct_never : direct_always,
                    .host_x = draw(0, 2) == 0,
                    .offset = 4 * static_cast<std::size_t>(draw(0, 1) * draw(0, 4)),
                    .options = "slice=" + std::to_string(draw(0, 2000)) + (draw(0, 2) == 0 ? " order=plain" : "")};
    if (draw(0, 4) == 0) one.host_rank = static_cast<int>(draw(0, one.ranks - 1));
    cases.push_back(one);
  }
  return cases;
}

// ---- Rows times vectors ----

class ProductsOnDevices : public DeviceRanks {
 protected:
  static std::vector<float> gemv_expected(const ProductCase& given, int round) {
    std::vector<float> sums(static_cast<std::size_t>(given.rows * given.columns));
    for (int of = 0; of < given.ranks; ++of)
      for (std::int64_t column = 0; column < given.columns; ++column)
        for (std::int64_t row = 0; row < given.rows; ++row) {
          float sum = 0;
          for (std::int64_t at = 0; at < given.depth(of); ++at)
            sum += number(of, row * given.depth(of) + at) * number(seed(of, round), column * given.depth(of) + at);
          sums[static_cast<std::size_t>(column * given.rows + row)] +=
              given.type == RowType::i8 ? sum * scale(row) : sum;
        }
    return sums;
  }

  static std::string run_gemv(const ProductCase& given) {
    return on_ranks(given.ranks, given.direct_from, [&](const Here& here) -> std::string {
      const std::int64_t depth = given.depth(here.rank);
      const DeviceCopy weights =
          DeviceCopy::of(as_rows(numbers(here.rank, given.rows * depth), given.type), given.offset);
      std::vector<float> factors;
      for (std::int64_t row = 0; row < given.rows; ++row) factors.push_back(scale(row));
      const DeviceCopy scales = DeviceCopy::of(factors);
      Output output(static_cast<std::size_t>(given.rows * given.columns), here.rank == given.host_rank, given.offset);
      Input x(static_cast<std::size_t>(depth * given.columns), given);
      auto made = Gemv::make(here.all,
                             {.rows = given.rows,
                              .depth = depth,
                              .columns = given.columns,
                              .type = static_cast<int>(given.type),
                              .weights = depth > 0 ? weights.address<void>() : nullptr,
                              .scales = given.type == RowType::i8 ? scales.address<float>() : nullptr,
                              .output = output.address(),
                              .options = given.options.c_str()},
                             here.members);
      if (!made.ok()) return made.status().message();
      return run_rounds(
          given, **made, output,
          [&](int round) {
            const float* place = x.write(numbers(seed(here.rank, round), depth * given.columns));
            return (*made)->start(depth > 0 ? place : nullptr);
          },
          [&](int round) { return gemv_expected(given, round); });
    });
  }

  // ---- Products of matrices ----

  static std::vector<float> gemm_expected(const ProductCase& given, const Range& rows, int round) {
    std::vector<float> sums;
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t column = 0; column < given.columns; ++column) {
        float sum = 0;
        for (int of = 0; of < given.ranks; ++of)
          for (std::int64_t at = 0; at < given.depth(of); ++at)
            sum += number(seed(of, round), row * given.depth(of) + at) * number(of, at * given.columns + column);
        sums.push_back(sum);
      }
    return sums;
  }

  static std::string run_gemm(const ProductCase& given) {
    return on_ranks(given.ranks, given.direct_from, [&](const Here& here) -> std::string {
      const std::int64_t depth = given.depth(here.rank);
      const Range rows = share_of(given.rows, given.ranks, here.rank);
      const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, depth * given.columns), given.offset);
      Output output(static_cast<std::size_t>(rows.length() * given.columns), here.rank == given.host_rank,
                    given.offset);
      Input x(static_cast<std::size_t>(given.rows * depth), given);
      auto made = GemmReduceScatter::make(here.all,
                                          {.rows = given.rows,
                                           .depth = depth,
                                           .columns = given.columns,
                                           .weights = depth > 0 ? weights.address<void>() : nullptr,
                                           .output = rows.length() > 0 ? output.address() : nullptr,
                                           .options = given.options.c_str()},
                                          here.members);
      if (!made.ok()) return made.status().message();
      return run_rounds(
          given, **made, output,
          [&](int round) {
            const float* place = x.write(numbers(seed(here.rank, round), given.rows * depth));
            return (*made)->start(depth > 0 ? place : nullptr);
          },
          [&](int round) { return gemm_expected(given, rows, round); });
    });
  }
};

TEST_F(ProductsOnDevices, RowsTimesVectorsAreRight) {
  for (const int ranks : {1, 2, 3, 5, 7}) {
    const ProductCase given{.ranks = ranks, .rows = 41, .columns = 3, .depths = {16, 5, 32}, .options = "slice=32"};
    const long before = FakeDevice::instance().kernels();
    EXPECT_EQ(run_gemv(given), "") << described(given);
    // One kernel multiplies and adds; where parts came too late, as here all but one rank's may, others add, one a
    // column.
    const long more = FakeDevice::instance().kernels() - before - ranks * device_rounds;
    EXPECT_GE(more, 0);
    EXPECT_LE(more, (ranks - 1) * device_rounds * given.columns);
  }
}

// 4 MiB of weights: as many workgroups as there are rows for, a row for each of their warps.
TEST_F(ProductsOnDevices, FewRowsAreForManyWorkgroups) {
  EXPECT_EQ(on_ranks(2, direct_always,
                     [](const Here& here) -> std::string {
                       constexpr std::int64_t rows = 1024, depth = 1024;
                       const DeviceCopy weights(rows * depth * sizeof(float)), output(rows * sizeof(float));
                       auto made = Gemv::make(here.all,
                                              {.rows = rows,
                                               .depth = depth,
                                               .columns = 1,
                                               .weights = weights.address<void>(),
                                               .output = output.address<void>()},
                                              here.members);
                       if (!made.ok()) return made.status().message();
                       const std::string& text = (*made)->description();
                       const std::string key = "\"tiles\": ";
                       const std::size_t at = text.find(key);
                       if (at == std::string::npos) return text;
                       return std::stoi(text.substr(at + key.size())) >= rows / 8 ? "" : text;
                     }),
            "");
}

TEST_F(ProductsOnDevices, RowsTimesVectorsOfEveryShapeAreRight) {
  for (const ProductCase& given : drawn_cases(60, 60, 16)) EXPECT_EQ(run_gemv(given), "") << described(given);
}

// Ranks that own no rows.
TEST_F(ProductsOnDevices, FewerRowsThanRanks) {
  const ProductCase few{.ranks = 5, .rows = 2, .columns = 2, .depths = {4}};
  EXPECT_EQ(run_gemv(few), "");
  EXPECT_EQ(run_gemm(few), "");
}

TEST_F(ProductsOnDevices, MatricesAreRight) {
  for (const int ranks : {1, 2, 3, 5, 7}) {
    const ProductCase given{.ranks = ranks, .rows = 141, .columns = 130, .depths = {16, 5, 0}, .options = "slice=4096"};
    const long before = FakeDevice::instance().kernels();
    EXPECT_EQ(run_gemm(given), "") << described(given);
    EXPECT_EQ(FakeDevice::instance().kernels() - before, ranks * device_rounds * 2) << "a product and a sum";
  }
}

TEST_F(ProductsOnDevices, MatricesOfEveryShapeAreRight) {
  for (ProductCase& given : drawn_cases(50, 150, 90)) {
    // All have data somewhere, so that none is in doubt where it computes.
    given.rows = std::max<std::int64_t>(given.rows, given.ranks);
    if (given.host_rank >= 0 && share_of(given.rows, given.ranks, given.host_rank).length() == 0) continue;
    EXPECT_EQ(run_gemm(given), "") << described(given);
  }
}

// An output that others cannot map.
TEST_F(ProductsOnDevices, OutputsOfAPoolGoByCopies) {
  const ProductCase given{.ranks = 3, .rows = 20, .depths = {8}};
  EXPECT_EQ(on_ranks(given.ranks, direct_always,
                     [&](const Here& here) -> std::string {
                       const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, given.rows * 8));
                       const DeviceCopy output(20 * sizeof(float), 0, here.rank == 1);
                       const DeviceCopy x = DeviceCopy::of(numbers(seed(here.rank, 0), 8));
                       auto made = Gemv::make(here.all,
                                              {.rows = given.rows,
                                               .depth = 8,
                                               .columns = 1,
                                               .weights = weights.address<void>(),
                                               .output = output.address<void>()},
                                              here.members);
                       if (!made.ok()) return made.status().message();
                       Status status = (*made)->start(x.address<float>());
                       if (status.ok()) status = (*made)->wait();
                       if (!status.ok()) return status.message();
                       if (output.read<float>() != gemv_expected(given, 0)) return "wrong";
                       return (*made)->description().find("\"on\"") == std::string::npos ? "" : (*made)->description();
                     }),
            "");
}

TEST_F(ProductsOnDevices, MissingVectorsAreRefused) {
  EXPECT_EQ(on_ranks(3, direct_always,
                     [](const Here& here) -> std::string {
                       const DeviceCopy weights = DeviceCopy::of(numbers(here.rank, 12)), output(4 * sizeof(float));
                       auto made = Gemv::make(here.all,
                                              {.rows = 4,
                                               .depth = 3,
                                               .columns = 1,
                                               .weights = weights.address<void>(),
                                               .output = output.address<void>()},
                                              here.members);
                       if (!made.ok()) return made.status().message();
                       return refuse_missing_input(here, **made, DeviceCopy::of(numbers(7, 3)), output);
                     }),
            "");
}

}  // namespace
}  // namespace plait::fused
