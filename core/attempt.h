// Failures that are thrown, as values.
#pragma once

#include <exception>

#include "core/status.h"

namespace plait {

// What was thrown within us: a lack of memory, or of something else that the system gives. Needs no memory.
Status status_of(const std::exception& exception) noexcept;

// Rank-local work between two communications: what it throws must not keep this rank from the next one.
template <class Work>
Status attempt(Work&& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return status_of(exception);
  }
}

}  // namespace plait
