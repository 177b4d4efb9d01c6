// Of the processes of a job on one machine a few at a time ask the launcher. Hydra's proxy and its mpiexec write to
// each other without reading meanwhile: of hundreds of questions that the proxy hands on at once both wait for ever.
#pragma once

#include <string_view>

namespace plait::plugin {

class LauncherTurn {
 public:
  static constexpr int at_once = 16;
  static constexpr int longest_s = 60;

  // Waits until that `turn` (modulo at_once) of `job` is free. A process that ends gives its own back; where there are
  // no sockets nobody waits, and nobody longer than `longest_seconds`: who has it may have been stopped, or be another
  // user's that took the name. Needs no memory.
  LauncherTurn(std::string_view job, int turn, int longest_seconds = longest_s) noexcept;
  ~LauncherTurn();
  LauncherTurn(const LauncherTurn&) = delete;
  LauncherTurn& operator=(const LauncherTurn&) = delete;

 private:
  int socket_;
};

}  // namespace plait::plugin
