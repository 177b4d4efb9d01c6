// What trials found, for later communicators of the job, and in the user's cache folder for later jobs
// (docs/tuning.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/model/collective.h"
#include "runtime/layer.h"

namespace plait::runtime {

// The fastest candidate of the calls of a class, on communicators of a shape.
struct TuningRecord {
  Collective collective;
  int size_class;                      // the size's number of binary digits: sizes from 2^(class - 1) on, below 2^class
  std::string plan;                    // its name, or "host"
  std::uint64_t nanoseconds;           // of a call
  std::uint64_t host_nanoseconds = 0;  // of the host's; 0: not known
};

// Keeps a tuning record of this process. Thread-safe.
void keep_tuning_record(const std::string& shape, const TuningRecord& tuning_record);

// What this process and, as the cache has it, earlier jobs have learned of this shape; empty: nothing. Reads the file
// at its first call, from the disk. Thread-safe.
std::vector<TuningRecord> earlier_tuning_records(const std::string& shape);
// Whether there is anything of any shape.
bool has_earlier_tuning_records();

// Tuning records as a text to send, and back.
std::string tuning_records_text(const std::vector<TuningRecord>& tuning_records);
std::vector<TuningRecord> parse_tuning_records(std::string_view text);

// At the end of the job, on one rank: adds what was learned to the cache. Blocks on the disk. Never fails: a cache that
// cannot be written stays as it is.
void write_tuning_records();

}  // namespace plait::runtime
