#include "runtime/oob/failure_notice.h"

#include <new>
#include <string>

namespace plait::runtime {

void FailureNotice::hear(int rank, Code code, const char* reason) noexcept {
  if (!improves(code)) return;
  try {
    heard_ = {code, "rank " + std::to_string(rank) + " has failed: " + reason};
  } catch (const std::bad_alloc&) {
    heard_ = {code, "a rank failed"};
  }
}

}  // namespace plait::runtime
