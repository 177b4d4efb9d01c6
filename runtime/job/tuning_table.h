// The tuning table of the job (PLAIT_TABLE): read by each process, taken only where all of them have the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/config.h"
#include "plan/choose/table.h"
#include "runtime/layer.h"

namespace plait::runtime {

// What one process finds.
struct OwnTable {
  static constexpr std::uint64_t none = 0, refused = 1;
  std::shared_ptr<const TuningTable> table;  // nullptr: none, or not one that can be used here
  std::uint64_t hash = none;                 // of the file's text, or why there is no table
  std::string refusal;                       // why not; empty where the user named none
};

// Reads the file that PLAIT_TABLE names, and looks whether it fits this process. Never fails: see `refusal`. Blocks on
// the disk. Precondition: MPI is initialised.
OwnTable read_own_table(const Config& config, const std::string& mpi_release);

// What this job's ranks run on (`mpi_release`: the host MPI's), as `plait probe` notes it in a machine file: the MPI
// library ("mpi"), this node's processors ("hardware") and the channels that may be used ("channels").
Fingerprint job_fingerprint(const Config& config, const std::string& mpi_release);

}  // namespace plait::runtime
