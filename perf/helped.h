// A work team whose workers are threads, for the thread that makes it: for measurements and tests.
#pragma once

#include <thread>
#include <vector>

#include "core/work_team.h"

namespace plait::perf {

class Helped {
 public:
  explicit Helped(int workers) {
    for (int place = 0; place < workers; ++place)
      workers_.emplace_back([this, place] {
        while (team.work(place)) {
        }
      });
    team.set_workers(workers);
    team.set_threads(1 + workers);
    set_own_team(&team);
  }
  ~Helped() {
    set_own_team(nullptr);
    team.stop();
    for (std::thread& worker : workers_) worker.join();
  }
  Helped(const Helped&) = delete;
  Helped& operator=(const Helped&) = delete;

  WorkTeam team;

 private:
  std::vector<std::thread> workers_;
};

}  // namespace plait::perf
