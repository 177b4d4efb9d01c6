// What the report and the trace get of a call.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "plan/model/collective.h"
#include "plugin/communicator.h"
#include "plugin/operation.h"
#include "plugin/request.h"
#include "runtime/record/report_rows.h"
#include "runtime/team/schedule_cache.h"

namespace plait::plugin {

// The row that a call is counted in where it runs here; nullptr: nothing is reported.
ReportRow* row_of(const Communicator& communicator, const Request& request, const PreparedCall& prepared, Form form);

// For the report and the trace: a call that ran here has come to its end.
void record(Communicator& communicator, const Request& request, const PreparedCall& prepared, ReportRow* row,
            std::uint64_t begin_ns);

// A call that the host took, for the report, which lacks it where memory is short. `communicator` may be nullptr.
struct HostCall {
  Collective collective;
  MPI_Comm comm;
  const Communicator* communicator;
  const Call* call;  // nullptr: of unknown size
  const char* reason;
  Form form = Form::blocking;
};
void count_host_call(const HostCall& call, std::uint64_t begin_ns) noexcept;

// A non-blocking or persistent call has come to its end.
void record_operation(Operation& operation);

}  // namespace plait::plugin
