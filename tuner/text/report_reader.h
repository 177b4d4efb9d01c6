// What `plait advise` takes out of a report's file (runtime/report/job_report.h, runtime/report/placement_facts.h).
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "tuner/text/layer.h"
#include "tuner/text/mapping_advice.h"
#include "tuner/text/placement_advice.h"

namespace plait::tuner {

inline constexpr std::size_t longest_report_file = std::size_t{256} << 20;

struct ReportedJob {
  std::string mpi;  // what the MPI library calls itself
  int ranks = 0;
  bool accelerated = false;             // whether any call was
  std::vector<RankPlace> places;        // by rank; empty where it is not known who is on which node
  double network_seconds_per_byte = 0;  // of a node's port; 0: not measured
  double ranks_per_core = 1;
  std::vector<GridTraffic> traffic;
};

// Fails (invalid) with what is wrong and where.
Result<ReportedJob> read_report(std::string_view text);

}  // namespace plait::tuner
