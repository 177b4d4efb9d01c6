// Work that one rank does by itself between two steps that all take.
#pragma once

#include <exception>

#include "core/status.h"
#include "plugin/errors.h"

namespace plait::plugin {

// Rank-local work between two communications: what it throws must not keep this rank from the next one.
template <class Work>
Status attempt(Work&& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return status_of(exception);
  }
}

}  // namespace plait::plugin
