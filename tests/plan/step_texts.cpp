#include "tests/plan/step_texts.h"

#include "plan/step/trace_file.h"

namespace plait::plan::step {

Trace told_trace() {
  Trace trace;
  trace.step.name = "told";
  trace.step.of = "a test's \"words\"";
  trace.step.tasks = {{.name = "first", .seconds = 1e-9, .after_previous = {"last", "sum"}},
                      {.name = "sum",
                       .collective = Collective::allreduce,
                       .bytes = 4097,
                       .after = {"first"},
                       .communicator = 3,
                       .site = "f(int)+0x1c",
                       .type = "MPI_INT",
                       .op = "sum"},
                      {.name = "swap", .collective = Collective::alltoall, .bytes = 24, .communicator = 1},
                      {.name = "half", .seconds = 0.1, .after = {"first"}},
                      {.name = "parts",
                       .collective = Collective::reduce_scatter_block,
                       .bytes = 8,
                       .after = {"swap"},
                       .blocking = true},
                      {.name = "barrier.3", .seconds = 0.25, .communicator = 1, .blocking = true, .site = "main+0x1"},
                      {.name = "deal", .collective = Collective::scatter, .bytes = 1, .after = {"swap", "half", "sum"}},
                      {.name = "last", .seconds = 2e-6, .after = {"swap", "sum"}, .after_previous = {"first"}}};
  trace.ranks = {8, 2, 0, 4};
  trace.times.resize(trace.step.tasks.size());
  trace.times[1] = {.submit = 1e-9, .seconds = 0.3};
  return trace;
}

std::string recording_text() {
  return R"({"plait_recording": 1, "program": "p", "communicators": [{"ranks": 4}, {"ranks": 2}], "calls_of_step": [
    {"name": "allreduce.0", "submit": 0.001, "call": {"mean": 0.0001}, "complete": {"mean": 0.003}},
    {"name": "bcast.1", "submit": 0.01, "call": {"mean": 0.002}}],
   "step": {"plait_step": 1, "name": "p", "tasks": [
    {"name": "before.0", "seconds": 0.001, "after_previous": ["bcast.1"]},
    {"name": "allreduce.0", "collective": "allreduce", "bytes": 64, "after": ["before.0"]},
    {"name": "before.1.0", "seconds": 0.001, "after": ["before.0"]},
    {"name": "before.1", "seconds": 0.002, "after": ["allreduce.0", "before.1.0"]},
    {"name": "bcast.1", "collective": "bcast", "bytes": 8, "after": ["before.1"], "communicator": 1,
     "blocking": true}]}})";
}

std::string foreign_chakra_text() {
  return R"({"version": "0.0.4"}{"name": "root", "type": "METADATA_NODE"}
{"id": "7", "name": "mul", "type": "COMP_NODE", "ctrlDeps": ["0"], "durationMicros": "250",
 "inputs": {"values": "[]"}, "attr": [{"name": "is_cpu_op", "boolVal": false}, {"name": "rf_id", "int64Val": "9"}]}
{"id": "3", "name": "launch", "type": "COMP_NODE", "dataDeps": ["7"]}
{"id": "4", "name": "nccl", "type": "COMM_COLL_NODE", "ctrlDeps": ["3"], "durationMicros": "1000", "attr": [
  {"name": "comm_type", "int64Val": "7"}, {"name": "comm_size", "int64Val": "4000"},
  {"name": "pg_name", "stringVal": "tensor"}]}
{"id": "5", "name": "mul", "type": "COMP_NODE", "dataDeps": ["4"], "durationMicros": "50"}
{"id": "6", "name": "fence", "type": "COMM_COLL_NODE", "dataDeps": ["5"], "durationMicros": "20", "attr": [
  {"name": "comm_type", "int64Val": "9"}]})";
}

}  // namespace plait::plan::step
