#include "core/attempt.h"

#include <new>

namespace plait {

Status status_of(const std::exception& exception) noexcept {
  try {
    if (dynamic_cast<const std::bad_alloc*>(&exception) == nullptr) return {Code::unavailable, exception.what()};
  } catch (const std::exception&) {
  }
  return {Code::unavailable, "out of memory"};  // short enough for a string without memory of its own
}

}  // namespace plait
