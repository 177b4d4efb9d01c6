// Which calls are the host's by their size: Plait's own rows, and a table's.
#include "plan/choose/host_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/choose/planner.h"
#include "plan/choose/table.h"
#include "topo/shape.h"

namespace plait::plan {
namespace {

constexpr std::size_t kib = 1024;

const HostSizes& on_one_node(int ranks) {
  static HostSizes sizes;
  return sizes = HostSizes({}, {.ranks = ranks, .between_nodes = false}, true);
}
const HostSizes& between_nodes(int ranks) {
  static HostSizes sizes;
  return sizes = HostSizes({}, {.ranks = ranks, .between_nodes = true}, true);
}

std::string why(const HostSizes& sizes, Form form, Collective collective, CallSize size) {
  const HostRow* row = sizes.row(form, collective, size);
  EXPECT_TRUE(row == nullptr || sizes.any(form, collective)) << "the glance must not miss it";
  return row != nullptr ? row->reason : "";
}

struct Case {
  bool across;
  int ranks;
  Form form;
  Collective collective;
  std::size_t bytes;  // of the call; of all ranks as many for each
  const char* reason;
};

constexpr Form blocking = Form::blocking, nonblocking = Form::nonblocking, persistent = Form::persistent;

constexpr Case cases[] = {
    {false, 4, blocking, Collective::scan, 511, reasons::host_is_faster},
    {false, 4, blocking, Collective::scan, 512, ""},
    {false, 4, nonblocking, Collective::exscan, 8 * kib, ""},
    {false, 4, persistent, Collective::exscan, 8 * kib + 1, reasons::host_is_faster},
    {false, 16, blocking, Collective::scan, 4 * kib, ""},
    {false, 16, blocking, Collective::scan, 4 * kib + 1, reasons::long_prefix},
    {true, 4, blocking, Collective::scan, 1024, reasons::host_is_faster},
    {true, 4, blocking, Collective::scan, 32 * kib, reasons::long_prefix},
    {false, 2, blocking, Collective::gatherv, 256, ""},
    {false, 2, persistent, Collective::gatherv, 4 * kib, reasons::host_is_faster},
    {true, 8, blocking, Collective::gatherv, 4 * kib, reasons::host_is_faster},
    {true, 8, nonblocking, Collective::gatherv, 256, reasons::host_is_faster},
    {false, 8, blocking, Collective::alltoallv, 256, ""},
    {true, 8, persistent, Collective::alltoallv, 256, reasons::too_short_to_order},
    {false, 8, persistent, Collective::allreduce, 8, ""},
    {true, 8, persistent, Collective::allreduce, 32 * kib - 1, reasons::too_short_to_order},
    {true, 8, persistent, Collective::allreduce, 32 * kib, ""},
    {true, 8, nonblocking, Collective::allreduce, 8, ""},
    {true, 8, blocking, Collective::reduce_scatter, 8, ""},  // the planner's
};

TEST(HostRows, AreThoseThatWereMeasured) {
  for (const Case& one : cases) {
    const HostSizes& sizes = one.across ? between_nodes(one.ranks) : on_one_node(one.ranks);
    const CallSize size{.call = one.bytes, .all_ranks = one.bytes * static_cast<std::size_t>(one.ranks)};
    EXPECT_EQ(why(sizes, one.form, one.collective, size), one.reason) << name(one.collective) << ' ' << one.bytes;
  }
}

// What whoever asks before there is a call is told, in payloads of a call.
TEST(HostRows, AreToldAsRangesOfPayloads) {
  const auto ranges = [](const char* forced, bool tabled, Form form, Collective collective) {
    TuningTable table;
    const TunedRange ours{.from = 0, .to = 100, .plan = "AR.1(rd) x1"}, hosts{.from = 100, .to = 5000, .plan = "host"};
    table.shapes.push_back(
        {"4x2", {{Collective::allreduce, {ours, hosts}}, {Collective::reduce_scatter_block, {ours}}}});
    const Hierarchy hierarchy = parse_shape("4x2")->hierarchy;
    PlannerOptions options;
    options.forced_plan = forced;
    options.warns = false;
    if (tabled) options.table = std::make_shared<const TuningTable>(table);
    return Planner(hierarchy, 0, options).host_ranges(form, collective);
  };
  using Ranges = std::vector<PayloadRange>;
  EXPECT_EQ(ranges("", false, nonblocking, Collective::gatherv), (Ranges{{0, HostRow::no_limit}}));
  EXPECT_EQ(ranges("ring", true, nonblocking, Collective::gatherv), (Ranges{{0, HostRow::no_limit}}));
  EXPECT_EQ(ranges("", false, nonblocking, Collective::reduce_scatter_block), (Ranges{{0, 65}}));  // of eight: 513 / 8
  EXPECT_EQ(ranges("", true, nonblocking, Collective::reduce_scatter_block), Ranges());
  EXPECT_EQ(ranges("", true, nonblocking, Collective::allreduce), (Ranges{{100, 5000}}));
  EXPECT_EQ(ranges("ring", true, nonblocking, Collective::allreduce), Ranges());
  EXPECT_EQ(ranges("", false, nonblocking, Collective::alltoallv), Ranges());  // no rank knows the lengths
  EXPECT_EQ(ranges("", false, persistent, Collective::allreduce), (Ranges{{0, 32 * kib}}));
}

TEST(HostRows, LeaveToThePlannerWhatAForcedPlanGoesBefore) {
  const auto faster = [](const HostSizes& sizes, std::size_t all) {
    return sizes.row_of_planned(Collective::reduce_scatter, {.call = all, .all_ranks = all}) != nullptr;
  };
  EXPECT_TRUE(faster(between_nodes(8), 512));
  EXPECT_FALSE(faster(between_nodes(8), 513));
  EXPECT_FALSE(faster(on_one_node(8), 8));
  EXPECT_FALSE(between_nodes(8).any(blocking, Collective::reduce_scatter));
}

TEST(HostRows, TellWhichMessagesAreWishedForTheHost) {
  const auto wished = [](const HostSizes& sizes, Collective collective, std::size_t mean) {
    return sizes.wished(collective, mean);
  };
  for (const Collective collective : {Collective::alltoallv, Collective::alltoallw}) {
    EXPECT_TRUE(wished(on_one_node(2), collective, 511));
    EXPECT_FALSE(wished(on_one_node(2), collective, 512));
    EXPECT_FALSE(wished(on_one_node(2), collective, 16 * kib - 1));
    EXPECT_TRUE(wished(on_one_node(2), collective, 16 * kib));
    EXPECT_FALSE(wished(on_one_node(3), collective, 0));
    EXPECT_TRUE(wished(on_one_node(3), collective, 4 * kib));
    EXPECT_FALSE(wished(between_nodes(2), collective, 1 << 20));
  }
  EXPECT_TRUE(wished(on_one_node(8), Collective::scatterv, 511));
  EXPECT_TRUE(wished(on_one_node(8), Collective::scatterv, 16 * kib));
  EXPECT_FALSE(wished(between_nodes(8), Collective::scatterv, 8));
  EXPECT_TRUE(wished(on_one_node(8), Collective::gatherv, 511));
  EXPECT_FALSE(wished(on_one_node(8), Collective::gatherv, 512));
  EXPECT_FALSE(wished(on_one_node(4), Collective::gatherv, 1 << 20));
  EXPECT_FALSE(wished(on_one_node(8), Collective::gatherv, 64 * kib - 1));
  EXPECT_TRUE(wished(on_one_node(8), Collective::gatherv, 64 * kib));
  EXPECT_TRUE(wished(on_one_node(16), Collective::gatherv, 16 * kib));
  EXPECT_TRUE(on_one_node(8).asks_ranks(Collective::gatherv));
  EXPECT_FALSE(between_nodes(8).asks_ranks(Collective::gatherv));
}

TEST(HostRows, HoldNowhereWithoutTheHostButForThoseThatAlwaysDo) {
  const HostSizes sizes({}, {.ranks = 8, .between_nodes = true}, false);
  for (int i = 0; i < collective_count; ++i)
    for (const Form form : {blocking, nonblocking, persistent})
      EXPECT_EQ(why(sizes, form, static_cast<Collective>(i), {.call = 8, .all_ranks = 64}), "") << i;
  EXPECT_EQ(why(sizes, blocking, Collective::scan, {.call = 64 * kib, .all_ranks = 512 * kib}), reasons::long_prefix);
  EXPECT_FALSE(sizes.wished(Collective::alltoallv, 0));
}

TEST(HostRows, CountOverAllRanksWithoutRunningOver) {
  const Call scan{.collective = Collective::scan, .count = std::size_t{1} << 62, .element_bytes = 1};
  EXPECT_EQ(call_size(scan, 64).all_ranks, HostRow::no_limit);
  EXPECT_NE(always_hosts({}, blocking, Collective::scan, call_size(scan, 64)), nullptr);
  const Call sum{.collective = Collective::allreduce, .count = 8, .element_bytes = 8};
  EXPECT_EQ(call_size(sum, 64).all_ranks, 64u);
}

// ---- A table's

constexpr const char* host_table = R"json({"plait_table": 1, "machine": "lab", "host": [
  {"collective": "scan", "rows": [{"where": "within a node", "from": 100, "to": 200}]},
  {"collective": "gatherv", "rows": []},
  {"collective": "alltoallv", "rows": [{"form": "blocking", "of": "message", "most_ranks": 8, "from": 10}]},
  {"collective": "allreduce", "rows": [{"form": "persistent", "where": "between nodes", "of": "all ranks", "to": 64},
                                       {"least_ranks": 8, "where": "between nodes", "to": 16}]}]})json";

HostSizes of_table(const TuningTable& table, HostSizes::Ranks ranks) { return HostSizes(table.host, ranks, true); }

TEST(HostTable, GoesBeforePlaitsOwnRowsOfACollective) {
  const auto table = parse_table(host_table);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_TRUE(table->shapes.empty());
  const HostSizes here = of_table(*table, {.ranks = 8, .between_nodes = false});
  const HostSizes there = of_table(*table, {.ranks = 8, .between_nodes = true});
  const auto equal = [](std::size_t bytes) { return CallSize{.call = bytes, .all_ranks = 8 * bytes}; };
  EXPECT_EQ(why(here, blocking, Collective::scan, equal(99)), "");
  EXPECT_EQ(why(here, persistent, Collective::scan, equal(100)), reasons::host_is_faster);
  EXPECT_EQ(why(here, blocking, Collective::scan, equal(1 << 20)), "") << "nor does the limit hold";
  EXPECT_EQ(always_hosts(table->host, blocking, Collective::scan, equal(1 << 20)), nullptr);
  EXPECT_EQ(why(there, persistent, Collective::scan, equal(8)), "") << "nor the rows for all collectives";
  EXPECT_EQ(why(there, persistent, Collective::bcast, equal(8)), reasons::too_short_to_order) << "another one's do";
  EXPECT_EQ(why(here, blocking, Collective::exscan, equal(8)), reasons::host_is_faster);
  EXPECT_EQ(why(here, blocking, Collective::gatherv, equal(256)), "");
  EXPECT_TRUE(here.wished(Collective::alltoallv, 10));
  EXPECT_FALSE(of_table(*table, {.ranks = 9}).wished(Collective::alltoallv, 1 << 20));
  EXPECT_EQ(why(there, persistent, Collective::allreduce, {.call = 63, .all_ranks = 63}), reasons::host_is_faster);
  EXPECT_EQ(why(there, blocking, Collective::allreduce, {.call = 8, .all_ranks = 8}), "") << "the planner is asked";
  EXPECT_NE(there.row_of_planned(Collective::allreduce, {.call = 8, .all_ranks = 8}), nullptr);
}

TEST(HostRows, SomeAreOfAnMpiAlone) {
  const std::vector<int> nodes = {2, 2, 2, 2};
  const auto reason = [&](HostKind host, std::size_t count) {
    PlannerOptions options;
    options.host = host;
    Planner planner(Hierarchy::nodes_of(nodes), 0, options);
    return std::string(planner.choose({.collective = Collective::reduce_scatter_block, .count = count}).reason);
  };
  EXPECT_EQ(reason(HostKind::mpi, 8), reasons::host_is_faster);
  EXPECT_EQ(reason(HostKind::layers, 8), "");
}

TEST(HostTable, IsReadAsItWasWritten) {
  const auto table = parse_table(host_table);
  ASSERT_TRUE(table.ok()) << table.status().message();
  const std::string written = table_json(*table);
  const auto again = parse_table(written);
  ASSERT_TRUE(again.ok()) << again.status().message() << written;
  EXPECT_EQ(table_json(*again), written);
}

TEST(HostTable, IsAskedByThePlannerToo) {
  auto table = parse_table(host_table);
  ASSERT_TRUE(table.ok());
  PlannerOptions options;
  options.table = std::make_shared<const TuningTable>(std::move(*table));
  const std::vector<int> nodes = {2, 2, 2, 2};
  const auto reason = [&](const PlannerOptions& with, std::size_t bytes) {
    Planner planner(Hierarchy::nodes_of(nodes), 0, with);
    return std::string(planner.choose({.collective = Collective::allreduce, .count = bytes}).reason);
  };
  EXPECT_EQ(reason(options, 8), reasons::host_is_faster);
  EXPECT_EQ(reason(options, 16), "");
  options.host_when_faster = false;
  EXPECT_EQ(reason(options, 8), "");
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = host_table;
  const auto at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(HostTable, WhatIsWrongIsNamedWithItsPlace) {
  const std::string row = "host[0].rows[0].";
  const std::pair<std::string, std::string> wrong[] = {
      {R"json({"plait_table": 1, "machine": "lab"})json", "shapes: expected a list"},
      {R"json({"plait_table": 1, "machine": "lab", "host": 3})json", "host: expected a list"},
      {with("\"host\": [", "\"shapes\": [], \"host\": ["), "shapes: expected a list"},
      {with("\"scan\"", "\"skan\""), "host[0].collective: expected"},
      {with("\"scan\"", "\"reshard\""), "host[0].collective: expected"},
      {with("\"gatherv\"", "\"scan\""), "host[1].collective: expected each collective once"},
      {with("\"rows\": []", "\"rows\": 3"), "host[1].rows: expected a list"},
      {with("\"rows\": []", "\"ranges\": []"), "host[1].\"ranges\" is no member"},
      {with("within a node", "in a node"), row + "where: expected one of anywhere, within a node, between nodes"},
      {with("\"where\": \"within a node\"", "\"form\": \"slow\""), row + "form: expected one of"},
      {with("\"where\": \"within a node\"", "\"of\": 3"), row + "of: expected one of"},
      {with("\"where\": \"within a node\"", "\"of\": \"message\""), row + "of: expected no \"message\""},
      {with("\"from\": 100", "\"from\": 200"), row + "to: expected more than 200"},
      {with("\"from\": 100", "\"from\": -1"), row + "from: expected a whole number"},
      {with("\"from\": 100", "\"most_ranks\": 0"), row + "most_ranks: expected"},
      {with("\"from\": 100", "\"most_ranks\": 1"), row + "most_ranks: expected at least 2"},
      {with("\"rows\": []", "\"rows\": [{\"to\": 8}]"), "host[1].rows[0].of: expected \"message\""},
      {with("\"form\": \"blocking\", \"of\"", "\"of\""), "host[2].rows[0].of: expected no \"message\""},
  };
  const std::string gathers = R"json("rows": [{"form": "blocking", "of": "message", "to": 8}])json";
  EXPECT_TRUE(parse_table(with("\"rows\": []", gathers)).ok());
  for (const auto& [text, words] : wrong) {
    const auto table = parse_table(text);
    ASSERT_FALSE(table.ok()) << words;
    EXPECT_NE(table.status().message().find(words), std::string::npos) << words << ": " << table.status().message();
  }
}

}  // namespace
}  // namespace plait::plan
