// A recording as a file: {"plait_recording": 1, ..., "step": a step as plan/step/step_file reads it}. docs/record.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/step/step_file.h"
#include "runtime/layer.h"
#include "runtime/recorder/call_kind.h"
#include "runtime/recorder/step_folder.h"

namespace plait::runtime {

struct Recording {
  std::string program;
  int world_rank = 0;
  const StepFolder* folder = nullptr;  // finished; not owned
  std::span<const CallKind> kinds;
  std::span<const std::vector<int>> communicators;  // by number: ranks of MPI_COMM_WORLD
  std::uint64_t lost = 0;                           // records that there was no room for
  std::uint64_t unwaited = 0;                       // operations that were not seen to end
};

// A step's calls and what lies between them, as tasks: a computation is the program's time since its last call or wait.
// Collectives that a step's file has not (barriers, scans, those on neighbours), and calls of unknown size, stand as
// computations of the time that they took. Throws where memory is short, as the next one does.
plan::step::Step step_of(const FoldedStep& folded, std::span<const CallKind> kinds, const std::string& name);

std::string recording_json(const Recording& recording);

}  // namespace plait::runtime
