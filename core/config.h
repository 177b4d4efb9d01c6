// Every PLAIT_* variable stands in one table: its name, type, default and documentation. The
// parser, the warnings about unknown names or values, and the documentation all come from it. The
// only getenv in the project is in config.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/channel_kind.h"

namespace plait {

struct Knob {
  std::string_view name;           // "PLAIT_REPORT"
  std::string_view type;           // "flag", "bytes", "count", "path", "flag or path", "name", ...
  std::string_view default_value;  // as a user would write it
  std::string_view help;           // one sentence
};

std::span<const Knob> knobs();

// Which calls are tried on the host and by several plans: none, all, or those whose results are the same whatever the
// order in which operands are combined.
enum class TrialMode : std::uint8_t { none, all, exact };

// What of floating-point results is the same: what the plan gives; the same bits from run to run and on all ranks; the
// same in whatever order operands are combined, too (docs/reproducible.md).
enum class Reproducible : std::uint8_t { no, run, order };

// "shm,tcp" as PLAIT_CHANNELS takes it, each once; empty where that is no list of channels.
std::vector<std::string> parse_channels(std::string_view text);

// The effective values, as typed fields, one for each knob.
struct Config {
  bool disable = false;     // PLAIT_DISABLE
  bool report = false;      // PLAIT_REPORT
  std::string report_path;  // PLAIT_REPORT=file.json or file.html; empty: standard error
  std::string trace_path;   // PLAIT_TRACE; empty: off
  std::string record_path;  // PLAIT_RECORD; empty: off
  std::string plan;         // PLAIT_PLAN: forced where it applies; empty: choose
  std::string table;        // PLAIT_TABLE: a tuning table's file; empty: none
  std::vector<std::string> channels = parse_channels(all_channel_names);  // PLAIT_CHANNELS: those allowed
  std::string rails = "all";                                              // PLAIT_RAILS: names, a number, or all
  std::string ucx_transports;             // PLAIT_UCX_TLS: as UCX_TLS; empty: by the kind of the rail
  std::string single_copy = "auto";       // PLAIT_SINGLE_COPY: auto | cma | xpmem | none
  std::size_t device_direct_from = 0;     // PLAIT_DEVICE_DIRECT (bytes); 0: built in; the largest: never
  std::size_t single_copy_threshold = 0;  // PLAIT_SINGLE_COPY_THRESHOLD (bytes); 0: measured
  std::size_t segment_bytes = 0;          // PLAIT_SEGMENT_BYTES: a node's shared segment; 0: rule
  std::string shared = "mpi";             // PLAIT_SHARED: mpi | malloc | none
  std::size_t shared_heap_bytes = 0;      // PLAIT_SHARED_HEAP_BYTES: of this process's shared heap; 0: the memory's
  std::string blas = "auto";              // PLAIT_BLAS: auto | none | a library's file
  std::size_t chunk_bytes = 0;            // PLAIT_CHUNK_BYTES: pipeline chunk; 0: planner's choice
  std::string progress = "calls";         // PLAIT_PROGRESS: calls | thread
  double progress_duty = 1;               // PLAIT_PROGRESS_DUTY: of a core, 0.01 to 1
  int progress_threads = 1;               // PLAIT_PROGRESS_THREADS: 1 to 1024
  int fused_workers = 0;                  // PLAIT_FUSED_WORKERS: 0 to 1024; 0: the processors of the rank's own
  bool fused_binding = false;             // PLAIT_FUSED_BINDING: each of their threads stays on a core
  std::string overlap;                    // PLAIT_OVERLAP: an overlap plan's file, or auto; empty: none
  std::string schedule;                   // PLAIT_SCHEDULE: a schedule's file, or auto; empty: none
  int flat_ranks = 1024;                  // PLAIT_FLAT_RANKS: of a communicator whose ranks all tell each other all
  int setup_calls = 3;                    // PLAIT_SETUP_CALLS: eligible calls before set-up
  std::string leaf_switch;                // PLAIT_SWITCH, else the switch that Slurm names; empty: unknown
  std::string only_gpu;                   // the one that CUDA_VISIBLE_DEVICES names; empty: none, or several
  bool host_when_faster = true;           // PLAIT_HOST: 0 never hands a supported call to the host
  TrialMode trial = TrialMode::all;       // PLAIT_TRIAL: which calls may be tried
  int trial_after = 64;                   // PLAIT_TRIAL_AFTER: calls of a class before its trial
  int trial_percent = 2;                  // PLAIT_TRIAL_PERCENT: of a class's time, for samples of other candidates
  Reproducible reproducible = Reproducible::no;  // PLAIT_REPRODUCIBLE
  bool cache = true;                             // PLAIT_CACHE: 0 neither reads nor keeps what trials found
  std::string cache_folder;                      // $XDG_CACHE_HOME/plait, else $HOME/.cache/plait; empty: none
  int verbosity = 1;                             // PLAIT_VERBOSE: 0 silent, 1 warnings, 2 info, 3 debug
};

struct LoadedConfig {
  Config config;
  // One line for each unknown name or value, naming the valid ones.
  std::vector<std::string> warnings;
};

// Reads `environment`: entries "NAME=value", as in environ. Never fails: what is not understood
// becomes a warning. Without PLAIT_SWITCH the switch is what stands before the node in SLURM_TOPOLOGY_ADDR, where
// SLURM_TOPOLOGY_ADDR_PATTERN says "switch.node" or "switch.switch.node" and so on (Slurm's topology/tree, srun(1)).
LoadedConfig load_config(std::span<const std::string_view> environment);
// `preferred`: entries that stand before the environment's.
LoadedConfig load_config_from_process(std::span<const std::string> preferred = {});

// What the process's environment says of a knob, valid or not; else its default.
std::string initial_text(const Knob& knob);

// Where the value of each knob came from, for `plait config`: name, value, "default" or
// "environment".
struct EffectiveValue {
  std::string_view name;
  std::string value;
  std::string_view origin;
};
std::vector<EffectiveValue> effective_values(std::span<const std::string_view> environment);

}  // namespace plait
