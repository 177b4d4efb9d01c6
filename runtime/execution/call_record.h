// What the report and the trace get of a call.
#pragma once

#include <cstdint>

#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"
#include "runtime/record/report_rows.h"
#include "runtime/team/schedule_cache.h"

namespace plait::runtime {

// The row that a call is counted in where it runs here; nullptr: nothing is reported.
ReportRow* row_of(const Communicator& communicator, const Request& request, const PreparedCall& prepared, Form form);

// For the report and the trace: a call that ran here has come to its end.
void record(Communicator& communicator, const Request& request, const PreparedCall& prepared, ReportRow* row,
            std::uint64_t begin_ns);

}  // namespace plait::runtime
