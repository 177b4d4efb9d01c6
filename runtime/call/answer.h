// What has become of something that the program asks of all ranks of a communicator.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "runtime/execution/caller.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct Answer {
  enum class What : std::uint8_t {
    done,
    refused,  // on all ranks alike; one of them has said why
    failed,   // for `error`
    left,     // this rank has no memory for what the others have done
  };
  What what = What::done;
  int error = 0;  // a code of the caller's, which is to be raised

  static Answer failure(int error) { return {.what = What::failed, .error = error}; }
  static Answer failure(const Status& status) { return failure(caller().code_of(status)); }
};

}  // namespace plait::runtime
