// What `plait bench` prints (docs/bench.md). Pure: no MPI.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/model/collective.h"
#include "tuner/text/job_shape.h"
#include "tuner/text/layer.h"
#include "tuner/text/measurement.h"
#include "tuner/text/node_limits.h"

namespace plait::tuner {

struct BenchRow {
  Collective collective;
  std::size_t bytes;
  Measurement measured;
  // The least time that the NIC leaves the collective, where a rate is given; on one node the memory.
  std::optional<double> bound_seconds;

  double ratio() const { return measured.host_seconds / measured.plait_seconds; }
  std::optional<double> bound_share() const;
};

struct BenchHeading {
  JobShape job;
  int root = 0;
  std::optional<double> rate_bytes_per_second = {};  // of all rails of a node together
  int rails = 1;
  std::optional<NodeLimits> limits = {};  // measured where all ranks are on one node
  BufferKind buffers = BufferKind::ordinary;

  bool bounded() const { return rate_bytes_per_second.has_value() || limits.has_value(); }
};

enum class BenchFormat { table, markdown, json, lines };

// Rows appear one by one, as they are measured; of `lines` each, and the heading, is a line of JSON. All texts end with
// a newline.
std::string bench_heading_text(const BenchHeading& heading, BenchFormat format);
std::string bench_row_text(const BenchHeading& heading, const BenchRow& row, BenchFormat format);
nlohmann::ordered_json bench_json(const BenchHeading& heading, const std::vector<BenchRow>& rows);

// "allreduce of 1 MiB"; "barrier".
std::string bench_row_name(const BenchRow& row);

}  // namespace plait::tuner
