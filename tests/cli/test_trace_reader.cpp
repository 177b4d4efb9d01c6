// The reader of PLAIT_TRACE's files, and the comparison with a prediction.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "topo/shape.h"
#include "tuner/text/trace_comparison.h"
#include "tuner/text/trace_reader.h"

namespace plait::tuner {
namespace {

using nlohmann::json;

json named(int rank, int thread, const std::string& name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

json span(const std::string& name, int rank, int thread, double begin, double length, json arguments) {
  return {{"name", name},
          {"ph", "X"},
          {"pid", rank},
          {"tid", thread},
          {"ts", begin},
          {"dur", length},
          {"args", std::move(arguments)}};
}

// Two ranks with three allreduce calls of 1 KiB, of 10, 30 and 20 us; the rank 1 is 2 us late.
json small_trace() {
  json events = json::array();
  for (int rank = 0; rank < 2; ++rank) {
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", rank}, {"tid", 0}, {"args", {{"name", "r"}}}});
    events.push_back(named(rank, 256, "WORLD, 2 ranks"));
    double begin = 1000 + 2 * rank;
    for (const double length : {10.0, 30.0, 20.0}) {
      events.push_back(span("allreduce", rank, 256, begin, length, {{"bytes", 1024}, {"plan", "AR.1(rd)"}}));
      events.push_back(span("send", rank, 257, begin + 1, length / 2,
                            {{"call", 1}, {"step", 0}, {"bytes", 1024}, {"peer", 1 - rank}, {"channel", "ucx"}}));
      events.push_back(span("recv_reduce", rank, 258, begin + 1, length - 2,
                            {{"call", 1}, {"step", 1}, {"bytes", 1024}, {"peer", 1 - rank}, {"channel", "ucx"}}));
      events.push_back(span("reduce", rank, 257, begin + length - 1, 1, {{"call", 1}, {"step", 2}, {"bytes", 1024}}));
      begin += 100;
    }
    events.push_back(named(rank, 512, "other, 2 ranks"));
    events.push_back(span("reduce", rank, 512, 5000, 1, {{"bytes", 8}, {"plan", "host"}}));
  }
  return events;
}

std::string file_of(const json& events) { return json{{"traceEvents", events}}.dump(); }

const TraceQuestion question{.collective = Collective::allreduce, .bytes = 1024, .ranks = 2, .plan = {}};

TEST(TraceReader, TakesTheCallOfTheMiddle) {
  const auto call = measured_call(file_of(small_trace()), question);
  ASSERT_TRUE(call.ok()) << call.status().message();
  EXPECT_EQ(call->communicator, "WORLD, 2 ranks");
  EXPECT_EQ(call->plan, "AR.1(rd)");
  EXPECT_EQ(call->calls, 3u);
  EXPECT_NEAR(call->seconds, 20e-6, 1e-12);
  ASSERT_EQ(call->ranks.size(), 2u);
  EXPECT_NEAR(call->ranks[1].begin, 2e-6, 1e-12);
  ASSERT_EQ(call->ranks[0].steps.size(), 3u);
  const MeasuredStep& second = call->ranks[0].steps[1];
  EXPECT_EQ(second.kind, "recv_reduce");
  EXPECT_EQ(second.channel, "ucx");
  EXPECT_EQ(second.peer, 1);
  EXPECT_EQ(second.bytes, 1024u);
  EXPECT_NEAR(second.begin, 1e-6, 1e-12);
  EXPECT_NEAR(second.end, 19e-6, 1e-12);
}

// A step of the kind "reduce" is no call of that name.
TEST(TraceReader, TellsStepsFromCalls) {
  const auto call = measured_call(file_of(small_trace()), {Collective::reduce, 8, 2, {}});
  ASSERT_TRUE(call.ok()) << call.status().message();
  EXPECT_EQ(call->communicator, "other, 2 ranks");
  EXPECT_EQ(call->calls, 1u);
  EXPECT_TRUE(call->ranks[0].steps.empty());
}

TEST(TraceReader, PrefersThePlanInQuestion) {
  json events = small_trace();
  for (int rank = 0; rank < 2; ++rank)
    events.push_back(span("allreduce", rank, 256, 9000, 5, {{"bytes", 1024}, {"plan", "RS.1(ring) AG.1(ring)"}}));
  TraceQuestion other = question;
  EXPECT_EQ(measured_call(file_of(events), other)->plan, "AR.1(rd)");
  other.plan = "RS.1(ring) AG.1(ring)";
  EXPECT_EQ(measured_call(file_of(events), other)->plan, other.plan);
}

TEST(TraceReader, ListsWhatThereIsInstead) {
  const auto none = measured_call(file_of(small_trace()), {Collective::bcast, 64, 2, {}});
  EXPECT_EQ(none.status().message(),
            "no bcast of 64 B on 2 ranks; it has allreduce of 1 KiB on 2 ranks, reduce of 8 B on 2 ranks");
  const auto empty = measured_call(R"({"traceEvents":[]})", question);
  EXPECT_EQ(empty.status().message(), "no allreduce of 1 KiB on 2 ranks; it has no calls at all");
}

TEST(TraceReader, RefusesWithThePlace) {
  const auto changed = [](const char* member, json value) {
    json events = small_trace();
    events[2][member] = std::move(value);
    return measured_call(file_of(events), question).status().message();
  };
  EXPECT_EQ(changed("ts", "soon"), "traceEvents[2].ts: expected a number of microseconds");
  EXPECT_EQ(changed("dur", -1), "traceEvents[2].dur: expected a number of microseconds, 0 or more");
  EXPECT_EQ(changed("dur", nullptr), "traceEvents[2].dur: expected a number of microseconds, 0 or more");
  EXPECT_EQ(changed("ts", 1e300), "traceEvents[2].ts: expected a number of microseconds");
  EXPECT_EQ(changed("pid", -1), "traceEvents[2].pid: expected a whole number, 0 or more");
  EXPECT_EQ(changed("pid", 1e300), "traceEvents[2].pid: expected a whole number, 0 or more");
  EXPECT_EQ(changed("ph", 1), "traceEvents[2].ph: expected a text");
  EXPECT_EQ(changed("args", 1), "traceEvents[2].args: expected an object");
  EXPECT_EQ(changed("args", json::object()), "traceEvents[2].args.bytes: expected a whole number of bytes, 0 or more");
  EXPECT_EQ(changed("args", {{"bytes", 1}}), "traceEvents[2].args.plan: expected a text");
}

TEST(TraceReader, RefusesWhatIsNoTrace) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string("7"),
        std::string(R"({"traceEvents":{}})"), std::string(R"({"traceEvents":[1]})"),
        std::string(R"({"traceEvents":[[]]})"), std::string(R"({"traceEvents":[NaN]})"), std::string(100000, '['),
        file_of(small_trace()).substr(0, file_of(small_trace()).size() / 2)}) {
    const auto call = measured_call(text, question);
    EXPECT_EQ(call.status().code(), Code::invalid) << text.substr(0, 40);
    EXPECT_EQ(call.status().message().find('\n'), std::string::npos);
  }
}

TEST(TraceComparison, FindsWhereTheyDiffer) {
  const auto call = measured_call(file_of(small_trace()), question);
  const auto shape = parse_shape("2x1");
  const Machine machine = default_machine();
  const CandidateContext context{.hierarchy = shape->hierarchy, .machine = machine};
  const auto timeline =
      plan_timeline("AR.1(rd)", {.collective = Collective::allreduce, .count = 1024, .element_bytes = 1}, context);
  ASSERT_TRUE(timeline.ok());
  const TraceComparison comparison = compare(*timeline, *call);
  EXPECT_EQ(comparison.predicted, timeline->seconds);
  EXPECT_NEAR(comparison.measured, 20e-6, 1e-12);
  ASSERT_EQ(comparison.parts.size(), 3u);
  EXPECT_EQ(comparison.parts[0].name, "between nodes");
  EXPECT_NEAR(comparison.parts[0].predicted, timeline->seconds, 1e-12);
  EXPECT_NEAR(comparison.parts[0].measured, 18e-6, 1e-12);
  ASSERT_EQ(comparison.parts[0].kinds.size(), 2u);
  EXPECT_EQ(comparison.parts[0].kinds[0].name, "recv_reduce");
  EXPECT_NEAR(comparison.parts[0].kinds[1].seconds, 10e-6, 1e-12);
  EXPECT_EQ(comparison.parts[1].name, "copies and sums");
  EXPECT_NEAR(comparison.parts[1].measured, 1e-6, 1e-12);
  EXPECT_EQ(comparison.parts[2].name, "in no step");
  EXPECT_NEAR(comparison.parts[2].measured, 1e-6, 1e-12);
}

}  // namespace
}  // namespace plait::tuner
