// Contention files, and the curves that are fitted to samples.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "plan/overlap/contention_fit.h"

namespace plait::plan {
namespace {

constexpr const char* small_file = R"json({"plait_contention": 1, "machine": "lab", "fingerprint": {"hardware": "x"},
  "kernel": "mixed", "shape": "4x2", "nodes": 4, "ranks": 8, "latency_seconds": 1e-5,
  "fit": {"computation": {"a1": 1, "a2": 0.1, "error": 0.01},
          "overlapped": {"g1": 100, "g2": 50, "g3": 1, "g4": 0.6, "error": 0.02},
          "alone": {"g1": 120, "g2": -5, "g3": 1, "g4": 0.6, "error": 0.03}},
  "samples": [{"threads": 1, "duty": 0.5, "bytes": 1024, "computation_seconds": 1, "overlapped_computation_seconds": 1.1,
               "overlapped_seconds": 2, "alone_seconds": 1.5},
              {"threads": 2, "duty": 1, "bytes": 1024, "computation_seconds": 1, "overlapped_computation_seconds": 1.2,
               "overlapped_seconds": 2, "alone_seconds": 1.5}],
  "reductions": [{"bytes": 1024, "startup_seconds": 0.1, "moved_bytes": 1536, "plan": "AR.12(ring) x1"},
                 {"bytes": 2048, "startup_seconds": 0.2, "moved_bytes": 3072, "plan": "AR.12(ring) x2"}]})json";

std::string with(const std::string& from, const std::string& to) {
  std::string text = small_file;
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Contention, IsReadAsItWasWritten) {
  const auto contention = parse_contention(small_file);
  ASSERT_TRUE(contention.ok()) << contention.status().message();
  EXPECT_EQ(contention->nodes, 4);
  EXPECT_EQ(contention->samples.at(1).share, (CommunicationShare{2, 1}));
  EXPECT_EQ(contention->fit->alone.g2, -5);
  EXPECT_EQ(known_shares(*contention).size(), 2u);
  const std::string written = contention_json(*contention);
  const auto again = parse_contention(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(contention_json(*again), written);
}

TEST(Contention, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "JSON"},
      {with("\"plait_contention\": 1", "\"plait_contention\": 3"), "plait_contention: expected 1"},
      {with("\"nodes\": 4", "\"nodes\": 0"), "nodes: expected a whole number"},
      {with("\"nodes\": 4", "\"nodes\": 4, \"agreement_seconds\": -1"), "agreement_seconds: expected"},
      {with("\"latency_seconds\": 1e-5", "\"latency_seconds\": -1"), "latency_seconds: expected"},
      {with("\"duty\": 0.5", "\"duty\": 1.5"), "samples[0].duty: expected a share"},
      {with("\"overlapped_seconds\": 2", "\"overlapped_seconds\": 0"), "samples[0].overlapped_seconds: expected"},
      {with("\"computation_seconds\": 1, ", ""), "samples[0].computation_seconds: expected a positive number; it is"},
      {with("\"bytes\": 1024, \"computation_seconds\"", "\"bytes\": 0, \"computation_seconds\""), "samples[0].bytes"},
      {with("\"a2\": 0.1", "\"a2\": \"x\""), "fit.computation.a2: expected a number"},
      {with("\"g3\": 1, ", ""), "fit.overlapped.g3: expected a number"},
      {with("\"error\": 0.01", "\"error\": 0.01, \"b\": 1"), "fit.computation.\"b\" is no member"},
      {with("\"computation\": {", "\"computation\": 3, \"x\": {"), "fit.\"x\" is no member"},
      {with("\"bytes\": 2048", "\"bytes\": 1024"), "reductions[1].bytes: expected more than 1024"},
      {with("\"moved_bytes\": 1536", "\"moved_bytes\": 0"), "reductions[0].moved_bytes: expected"},
      {with("\"samples\": [", "\"samples\": [], \"x\": ["), "\"x\" is no member"},
      {R"({"plait_contention": 1, "machine": "a", "kernel": "b", "samples": []})", "expected a table, or a fit"},
  };
  for (const auto& [text, words] : cases) {
    const auto contention = parse_contention(text);
    ASSERT_FALSE(contention.ok()) << words;
    EXPECT_EQ(contention.status().code(), Code::invalid);
    EXPECT_NE(contention.status().message().find(words), std::string::npos)
        << words << ": " << contention.status().message();
  }
}

TEST(Contention, ModelIsTheCurvesOrTheTable) {
  Contention contention = *parse_contention(small_file);
  const CommunicationShare half{1, 0.5};
  const ReductionCosts costs = interpolated(contention.reductions);
  const auto fitted = overlap_model(contention, {half}, costs);
  ASSERT_TRUE(fitted.ok()) << fitted.status().message();
  EXPECT_DOUBLE_EQ(fitted->slowdown[0], 1 / (1 - 0.05));
  EXPECT_DOUBLE_EQ(fitted->overlapped(1024, 0), 0.1 + 1536 / (100 - 50 * std::exp(-std::pow(0.5, 0.6))));
  contention.table = {{half, 1.25, 10, 20}};
  const auto table = overlap_model(contention, {half}, costs);
  ASSERT_TRUE(table.ok());
  EXPECT_DOUBLE_EQ(table->slowdown[0], 1.25);
  EXPECT_DOUBLE_EQ(table->overlapped(1536, 0), 0.15 + 230.4) << "between the two sizes";
  EXPECT_DOUBLE_EQ(table->alone(4096, 0), 0.2 + 6144. / 20) << "beyond them";
  EXPECT_FALSE(overlap_model(contention, {{2, 1}}, costs).ok()) << "the table has no such row";
  contention.table.clear();
  EXPECT_FALSE(overlap_model(contention, {{20, 1}}, costs).ok()) << "g is negative there";
}

TEST(Contention, AgreementIsMeasuredOrAStartUp) {
  Contention contention = *parse_contention(small_file);
  const ReductionCosts here = interpolated(contention.reductions), farther = ring_costs(101, 1e-3);
  EXPECT_DOUBLE_EQ(agreement_seconds(contention, here), 0.1);
  EXPECT_DOUBLE_EQ(agreement_seconds(contention, farther), 0.2);
  const auto measured = parse_contention(with("\"nodes\": 4", "\"nodes\": 4, \"agreement_seconds\": 0.3"));
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_DOUBLE_EQ(agreement_seconds(*measured, here), 0.3);
  EXPECT_DOUBLE_EQ(agreement_seconds(*measured, farther), 0.6) << "in proportion to the start-up";
  EXPECT_EQ(parse_contention(contention_json(*measured))->agreement, 0.3);
}

TEST(Contention, RingIsThePapersFormula) {
  const ReductionCost cost = ring_costs(8, 1e-5)(1000);
  EXPECT_DOUBLE_EQ(cost.startup, 14e-5);
  EXPECT_DOUBLE_EQ(cost.moved, 1750);
}

std::vector<ContentionSample> samples_of(const ContentionFit& truth, const ReductionCosts& costs, double noise) {
  std::mt19937_64 random(7);
  const auto about = [&](double value) { return value * (1 + std::uniform_real_distribution(-noise, noise)(random)); };
  std::vector<ContentionSample> samples;
  for (const double duty : {0.05, 0.1, 0.2, 0.35, 0.6, 1.}) {
    for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{1} << 22}) {
      const CommunicationShare share{1, duty};
      const ReductionCost cost = costs(static_cast<double>(bytes));
      samples.push_back({share, bytes, 0.5, about(0.5 * truth.computation.at(share)),
                         about(cost.startup + cost.moved / truth.overlapped.at(share)),
                         about(cost.startup + cost.moved / truth.alone.at(share))});
    }
  }
  return samples;
}

TEST(ContentionFit, FindsTheCurvesThatSamplesWereMadeOf) {
  const ContentionFit truth{{0.98, 0.3, 0}, {5e8, 4.5e8, 2.5, 0.6, 0}, {6e8, 3e8, 4, 0.6, 0}};
  const ReductionCosts costs = ring_costs(4, 2e-5);
  for (const bool free : {false, true}) {
    const auto fit = fit_contention(samples_of(truth, costs, 0), costs, {free ? std::nullopt : std::optional(0.6)});
    ASSERT_TRUE(fit.ok()) << fit.status().message();
    EXPECT_NEAR(fit->computation.a1, 0.98, 1e-6);
    EXPECT_NEAR(fit->computation.a2, 0.3, 1e-6);
    EXPECT_LT(fit->overlapped.error, 1e-4);
    EXPECT_LT(fit->alone.error, 1e-4);
    if (!free) {
      EXPECT_NEAR(fit->overlapped.g1, 5e8, 1e5);
      EXPECT_NEAR(fit->overlapped.g3, 2.5, 1e-2);
    }
  }
}

TEST(ContentionFit, ErrorsAreThoseOfTheSamples) {
  const ContentionFit truth{{1, 0.2, 0}, {5e8, 4.5e8, 2.5, 0.6, 0}, {6e8, 3e8, 4, 0.6, 0}};
  const ReductionCosts costs = ring_costs(4, 2e-5);
  const auto fit = fit_contention(samples_of(truth, costs, 0.08), costs, {});
  ASSERT_TRUE(fit.ok());
  for (const double error : {fit->computation.error, fit->overlapped.error, fit->alone.error}) {
    EXPECT_GT(error, 0.005);
    EXPECT_LT(error, 0.08);
  }
}

// Fewer shares than parameters, one share, rates that fall with r, and rates that do not depend on it.
TEST(ContentionFit, FewOrFlatSamplesGiveACurveAllTheSame) {
  const ReductionCosts costs = ring_costs(2, 1e-5);
  for (const double slope : {0., 0.5, -0.3}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{5}}) {
      std::vector<ContentionSample> samples;
      for (std::size_t i = 0; i < count; ++i) {
        const double duty = 0.2 * static_cast<double>(i + 1), seconds = 0.01 * (1 - slope * duty);
        samples.push_back({{1, duty}, 1 << 20, 1, 1 + 0.1 * duty, seconds, seconds});
      }
      const auto fit = fit_contention(samples, costs, {});
      ASSERT_TRUE(fit.ok()) << fit.status().message();
      for (const ContentionSample& sample : samples) {
        const double rate = fit->alone.at(sample.share);
        EXPECT_NEAR((1 << 20) / rate / sample.alone, 1, 0.1) << "slope " << slope << ", " << count << " samples";
        EXPECT_NEAR(fit->computation.at(sample.share), sample.overlapped_computation, 0.01);
      }
    }
  }
}

TEST(ContentionFit, RefusesSamplesWithoutTransmission) {
  EXPECT_FALSE(fit_contention({}, ring_costs(2, 1e-5), {}).ok());
  EXPECT_FALSE(fit_contention({{{1, 1}, 4096, 1, 1, 1e-5, 1e-5}}, ring_costs(2, 1e-5), {}).ok());
  EXPECT_FALSE(measured_table({{{1, 1}, 4096, 1, 1, 1e-5, 1e-5}}, ring_costs(2, 1e-5)).ok());
}

TEST(ContentionFit, TableHasTheMeansByShare) {
  const ReductionCosts costs = ring_costs(2, 0);
  const auto table = measured_table(
      {{{1, 0.5}, 1000, 1, 1.1, 1, 0.5}, {{1, 0.5}, 1000, 1, 1.3, 3, 0.5}, {{1, 1}, 1000, 1, 2, 1, 1}}, costs);
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->size(), 2u);
  EXPECT_DOUBLE_EQ((*table)[0].slowdown, 1.2);
  EXPECT_DOUBLE_EQ((*table)[0].overlapped_rate, 500) << "1000 B in 2 s on average";
  EXPECT_DOUBLE_EQ((*table)[0].alone_rate, 2000);
}

}  // namespace
}  // namespace plait::plan
