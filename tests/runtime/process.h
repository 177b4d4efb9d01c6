// What the ranks of a job in one process have in common, while a test runs, and where each is said to be.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/job/job.h"
#include "runtime/team/team_request.h"

namespace plait::runtime {

class Process {
 public:
  explicit Process(int ranks) {
    job_.config.channels = {"mpi"};
    job_.config.host_when_faster = false;
    job_.config.trial = TrialMode::none;
    job_.ranks_on_machine = ranks;
    detail::job = &job_;
  }
  ~Process() { detail::job = nullptr; }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Config& config() { return job_.config; }
  void overlap(std::shared_ptr<const OverlapPlan> plan) { job_.overlap = std::move(plan); }
  void learn_overlap() { job_.learns_overlap = true; }

 private:
  Job job_;
};

// Consecutive ranks share a node, and its cores.
struct Shape {
  int ranks, on_node;
  int cores = 1;
};

inline std::string name_of(const testing::TestParamInfo<Shape>& shape) {
  return std::to_string(shape.param.ranks) + "In" + std::to_string(shape.param.on_node) +
         (shape.param.cores > 1 ? "On" + std::to_string(shape.param.cores) : "");
}

inline TeamRequest request_of(int rank, const Shape& shape, TeamExtent extent) {
  Location location;
  location.host = {1, static_cast<std::uint64_t>(rank / shape.on_node) + 1};
  location.machine = 1;
  location.cores_allowed = shape.cores;
  location.process = rank + 1;
  TeamRequest request;
  request.extent = extent;
  request.location = location;
  return request;
}

// By which what is late, and when, is drawn: --gtest_random_seed, else always the same. Tests print it where they fail.
inline std::uint64_t test_seed() {
  const int given = testing::UnitTest::GetInstance()->random_seed();
  return given != 0 ? static_cast<std::uint64_t>(given) : 20261124;
}

}  // namespace plait::runtime
