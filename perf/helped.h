// A work team whose assistants are threads, for the thread that makes it: for measurements and tests.
#pragma once

#include <thread>
#include <vector>

#include "core/work_team.h"

namespace plait::perf {

class Helped {
 public:
  explicit Helped(int assistants) {
    for (int place = 0; place < assistants; ++place)
      assistants_.emplace_back([this, place] {
        while (team.assist(place)) {
        }
      });
    team.set_assistants(assistants);
    team.set_threads(1 + assistants);
    set_own_team(&team);
  }
  ~Helped() {
    set_own_team(nullptr);
    team.stop();
    for (std::thread& assistant : assistants_) assistant.join();
  }
  Helped(const Helped&) = delete;
  Helped& operator=(const Helped&) = delete;

  WorkTeam team;

 private:
  std::vector<std::thread> assistants_;
};

}  // namespace plait::perf
