#include "core/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace plait {
namespace {

constexpr std::size_t ki = 1024;

TEST(ParseBytes, TakesBinarySuffixesInEitherCase) {
  const std::pair<std::string_view, std::size_t> cases[] = {
      {"0", 0},
      {"8", 8},
      {"8B", 8},
      {"1K", ki},
      {"64KiB", 64 * ki},
      {"64kib", 64 * ki},
      {"64kb", 64 * ki},
      {"1M", ki * ki},
      {"2G", 2 * ki * ki * ki},
      {"1T", ki * ki * ki * ki},
      {"1 MiB", ki * ki},
      {"18446744073709551615", SIZE_MAX},
  };
  for (const auto& [text, bytes] : cases) {
    const Result<std::size_t> result = parse_bytes(text);
    ASSERT_TRUE(result.ok()) << text << ": " << result.status().message();
    EXPECT_EQ(*result, bytes) << text;
  }
}

TEST(ParseBytes, RefusesTheRestAndNamesIt) {
  for (const std::string_view text : {"", "K", "-1", "+1", "1.5K", "0x10", " 8", "8 ", "8  K", "1X", "1KK", "1iB",
                                      "1Ki B", "18446744073709551616", "16777216T", "99999999999999999999999K"}) {
    const Result<std::size_t> result = parse_bytes(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), Code::invalid);
    EXPECT_NE(result.status().message().find(text), std::string::npos);
  }
}

TEST(ParseRate, TakesBitsDecimallyAndBytesEitherWay) {
  const std::pair<std::string_view, double> cases[] = {
      {"250mbit", 31.25e6},  {"1gbit", 125e6}, {"100kbit", 12500}, {"8bit", 1},        {"2.5Gbit", 312.5e6},
      {"31250000", 31.25e6}, {"31MB", 31e6},   {"1e9", 1e9},       {"12.5GB", 12.5e9}, {"1GiB", 0x1p30},
  };
  for (const auto& [text, rate] : cases) {
    const Result<double> result = parse_rate(text);
    ASSERT_TRUE(result.ok()) << text << ": " << result.status().message();
    EXPECT_DOUBLE_EQ(*result, rate) << text;
  }
}

TEST(ParseRate, RefusesWhatIsNoPositiveRate) {
  for (const std::string_view text :
       {"", "mbit", "0", "0mbit", "-1gbit", "inf", "nan", "1e999", "1e308TB", "1e-320bit ", "10 mbit", "1xbit"}) {
    EXPECT_FALSE(parse_rate(text).ok()) << text;
  }
}

TEST(FormatBytes, UsesTheLargestUnitThatKeepsANumberReadable) {
  const std::pair<std::size_t, std::string_view> cases[] = {
      {0, "0 B"},           {100, "100 B"},          {1023, "1023 B"},
      {1024, "1 KiB"},      {1536, "1.5 KiB"},       {1048576, "1 MiB"},
      {1048575, "1 MiB"},   {1047000, "1022.5 KiB"}, {ki * ki * ki * 3 / 2, "1.5 GiB"},
      {SIZE_MAX, "16 EiB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_bytes(bytes), text);
}

TEST(FormatBytes, WholeUnitsAreReadBackUnchanged) {
  for (std::size_t shift = 0; shift < 41; ++shift) {
    const std::size_t bytes = std::size_t{1} << shift;
    const Result<std::size_t> read = parse_bytes(format_bytes(bytes));
    ASSERT_TRUE(read.ok()) << format_bytes(bytes);
    EXPECT_EQ(*read, bytes);
  }
}

TEST(FormatSeconds, GivesThreeDigitsInTheFittingUnit) {
  const std::pair<double, std::string_view> cases[] = {
      {0, "0 s"},
      {3e-10, "0.30 ns"},
      {1.25e-6, "1.25 us"},
      {0.00005, "50.0 us"},
      {123e-6, "123 us"},
      {9.996e-6, "10.0 us"},
      {99.96e-6, "100 us"},
      {0.9996e-3, "1.00 ms"},
      {0.0503, "50.3 ms"},
      {1.5, "1.50 s"},
      {3600, "3600 s"},
      {-0.002, "-2.00 ms"},
      {std::numeric_limits<double>::infinity(), "inf s"},
      {std::numeric_limits<double>::quiet_NaN(), "nan s"},
      {-std::numeric_limits<double>::infinity(), "-inf s"},
  };
  for (const auto& [seconds, text] : cases) EXPECT_EQ(format_seconds(seconds), text);
  EXPECT_GT(format_seconds(std::numeric_limits<double>::max()).size(), 300u);
}

}  // namespace
}  // namespace plait
