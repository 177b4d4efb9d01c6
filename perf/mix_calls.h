// The calls of a mix with their buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "perf/layer.h"
#include "perf/mix_file.h"
#include "tuner/measure/session.h"

namespace plait::perf {

// One kind of a mix's calls on MPI_COMM_WORLD; as CollectiveCall (tuner/measure/collective_calls.h).
class MixCall {
 public:
  virtual ~MixCall() = default;
  virtual void prepare(std::uint64_t key) = 0;
  virtual void run() = 0;
  virtual bool right() const = 0;  // whether this rank's last result is what it had to be
};

// `invalid` for a size that cannot be measured, `unavailable` without memory. Not collective.
Result<std::unique_ptr<MixCall>> make_mix_call(const MixCalls& kind, const MpiSession& session);

}  // namespace plait::perf
