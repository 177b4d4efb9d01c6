// What the processes of a job tell each other through a launcher that speaks PMI-1 (MPICH's hydra, Slurm's pmi2 plugin
// for clients of PMI-1): a client beside that of the MPI library, on the same descriptor. Both ask a line and read a
// line, so that there is nothing on the way between the library's calls.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace plait::plugin {

class PmiStore {
 public:
  // Asks the launcher for the job's name. Precondition: the MPI library has greeted it. Not owned.
  static Result<PmiStore> open(int descriptor);

  // Seen by all once they have met at the launcher's next barrier. No blanks in either.
  Status put(std::string_view key, std::string_view value) const;
  // Needs no memory where there is no value, or one of fewer than 16 characters.
  Result<std::string> get(std::string_view key) const;

 private:
  PmiStore(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;
  std::string name_;
};

}  // namespace plait::plugin
