#include "runtime/progress/operation_record.h"

#include "runtime/execution/call_record.h"
#include "runtime/record/report_rows.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

// A call that ran in a group: it stands under the group's plan.
void record_fused(const Operation& operation) {
  const Communicator& communicator = *operation.communicator;
  const PreparedCall& prepared = *operation.prepared;
  report_row({.collective = operation.request.call.collective,
              .ranks = communicator.ranks,
              .size_class = size_class(prepared.payload),
              .plan = operation.membership.plan,
              .channels = operation.membership.channels,
              .reason = "",
              .form = operation.form,
              .grid = communicator.grid})
      .add(prepared.payload, monotonic_ns() - operation.begin_ns);
}

}  // namespace

void record_operation(Operation& operation) {
  Communicator& communicator = *operation.communicator;
  const PreparedCall& prepared = *operation.prepared;
  if (operation.membership.plan != nullptr && prepared.row != nullptr) return record_fused(operation);
  const Form form = operation.space != nullptr ? Form::persistent : operation.form;
  ReportRow* row = row_of(communicator, operation.request, prepared, form);
  record(communicator, operation.request, prepared, row, operation.begin_ns);
}

}  // namespace plait::runtime
