// What the report gets of a call that the host took.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plan/model/collective.h"
#include "plugin/layer.h"
#include "runtime/execution/communicator.h"
#include "runtime/record/report_rows.h"

namespace plait::plugin {

// `communicator` may be nullptr.
struct HostCall {
  Collective collective;
  MPI_Comm comm;
  const Communicator* communicator;
  const Call* call;  // nullptr: of unknown size
  const char* reason;
  Form form = Form::blocking;
};
// The report lacks it where memory is short.
void count_host_call(const HostCall& call, std::uint64_t begin_ns) noexcept;

// A floating-point sum or product that the host combines in an order of its own, though PLAIT_REPRODUCIBLE=order: said
// once, and counted.
[[gnu::cold]] void note_lost_order(Collective collective, const Communicator& communicator,
                                   const char* reason) noexcept;

}  // namespace plait::plugin
