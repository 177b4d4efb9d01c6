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

// The fastest way of the calls of a class, on communicators of a shape.
struct Lesson {
  Collective collective;
  int size_class;                      // the size's number of binary digits: sizes from 2^(class - 1) on, below 2^class
  std::string plan;                    // its name, or "host"
  std::uint64_t nanoseconds;           // of a call
  std::uint64_t host_nanoseconds = 0;  // of the host's; 0: not known
};

// Keeps a lesson of this process. Thread-safe.
void keep_lesson(const std::string& shape, const Lesson& lesson);

// What this process and, as the cache has it, earlier jobs have learned of this shape; empty: nothing. Reads the file
// at its first call, from the disk. Thread-safe.
std::vector<Lesson> earlier_lessons(const std::string& shape);
// Whether there is anything of any shape.
bool has_earlier_lessons();

// Lessons as a text to send, and back.
std::string lessons_text(const std::vector<Lesson>& lessons);
std::vector<Lesson> parse_lessons(std::string_view text);

// At the end of the job, on one rank: adds what was learned to the cache. Blocks on the disk. Never fails: a cache that
// cannot be written stays as it is.
void write_lessons();

}  // namespace plait::runtime
