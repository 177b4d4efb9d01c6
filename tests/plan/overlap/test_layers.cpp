// Layer tables: written and read, refused with the place; what a backward pass is made of.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "plan/overlap/layers.h"

namespace plait::plan {
namespace {

constexpr const char* small_table = R"json({"plait_layers": 1, "model": "net", "layers": [
  {"name": "pool", "bytes": 0, "seconds": 0.5}, {"name": "fc", "bytes": 400, "seconds": 1},
  {"name": "conv", "bytes": 40, "seconds": 2}, {"name": "input", "bytes": 0, "seconds": 0.25}]})json";

std::string with_change(const std::string& from, const std::string& to) {
  std::string text = small_table;
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Layers, AreReadAsTheyWereWritten) {
  const auto table = parse_layers(small_table);
  ASSERT_TRUE(table.ok()) << table.status().message();
  const std::string written = layers_json(*table);
  const auto again = parse_layers(written);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(layers_json(*again), written);
}

TEST(Layers, WithoutParametersCountForTheNextGradient) {
  const LayerTable table = *parse_layers(small_table);
  const BackwardPass pass = backward_pass(table);
  EXPECT_EQ(pass.computation, (std::vector<double>{1.5, 2}));
  EXPECT_EQ(pass.bytes, (std::vector<double>{400, 40}));
  EXPECT_EQ(pass.tail, 0.25);
  EXPECT_EQ(pass.total(), 3.75);
  const auto calls = overlap_calls(table);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].layer, "conv");
}

TEST(Layers, AreScaled) {
  const LayerTable table = scaled(*parse_layers(small_table), 2, 0.001);
  EXPECT_EQ(table.layers[2].seconds, 4);
  EXPECT_EQ(table.layers[0].bytes, 0u);
  EXPECT_EQ(table.layers[1].bytes, 4u) << "no gradient vanishes";
}

TEST(Layers, WhatIsWrongIsNamedWithItsPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "JSON"},
      {"[]", "the document: expected an object"},
      {with_change("\"plait_layers\": 1", "\"plait_layers\": 2"), "plait_layers: expected 1"},
      {with_change("\"net\"", "\"\""), "model: expected a name"},
      {with_change("\"seconds\": 1}", "\"seconds\": -1}"), "layers[1].seconds: expected a number of seconds"},
      {with_change("\"seconds\": 1}", "\"seconds\": NaN}"), "JSON"},
      {with_change("\"seconds\": 1}", "\"seconds\": 1e999}"), "JSON"},
      {with_change("\"seconds\": 1}", "\"seconds\": \"1\"}"), "layers[1].seconds: expected a number of seconds"},
      {with_change(", \"seconds\": 1}", "}"), "layers[1].seconds: expected a number of seconds, 0 or more; it is missing"},
      {with_change("\"seconds\": 1}", "\"seconds\": 1e10}"), "layers: expected computation of"},
      {with_change("\"bytes\": 400", "\"bytes\": -4"), "layers[1].bytes: expected a whole number"},
      {with_change("\"bytes\": 400", "\"bytes\": 4611686018427387904"), "layers: expected gradients of at most"},
      {with_change("\"name\": \"fc\"", "\"name\": 3"), "layers[1].name: expected a name"},
      {with_change("\"name\": \"fc\"", "\"flops\": 3, \"name\": \"fc\""), "layers[1].\"flops\" is no member"},
      {R"({"plait_layers": 1, "model": "net", "layers": []})", "layers: expected a list of 1 to"},
      {R"({"plait_layers": 1, "model": "net"})", "layers: expected a list of 1 to"},
      {R"({"plait_layers": 1, "model": "net", "layers": [{"name": "a", "bytes": 0, "seconds": 1}]})",
       "layers: expected a layer with a gradient"},
      {R"({"plait_layers": 1, "model": "net", "layers": [{"name": "a", "bytes": 4, "seconds": 0}]})",
       "layers: expected computation of"},
  };
  for (const auto& [text, words] : cases) {
    const auto table = parse_layers(text);
    ASSERT_FALSE(table.ok()) << words;
    EXPECT_EQ(table.status().code(), Code::invalid);
    EXPECT_NE(table.status().message().find(words), std::string::npos) << words << ": " << table.status().message();
  }
}

}  // namespace
}  // namespace plait::plan
