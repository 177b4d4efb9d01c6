// One collective call on its way from the program to the engine.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "core/status.h"
#include "plan/model/collective.h"
#include "plugin/communicator.h"
#include "plugin/layer.h"
#include "plugin/layout.h"
#include "plugin/pair_exchange.h"
#include "plugin/reasons.h"
#include "plugin/reduction.h"
#include "plugin/report.h"

namespace plait::plugin {

// Which side's memory holds the other one's (MPI_IN_PLACE).
enum class Sharing : std::uint8_t { none, input_in_output, output_in_input };

// What becomes of the segments that a scan's ranks have brought together.
enum class Prefix : std::uint8_t { none, inclusive, exclusive };

struct PreparedCall;  // schedule_cache.h

struct Request {
  Call call;
  Region input, output;
  Sharing sharing = Sharing::none;
  std::size_t own_offset = 0;  // packed bytes before this rank's segment in the side that holds the other
  bool copy_input = false;     // the output overwrites the input in another order than it is read
  const std::size_t* displacements = nullptr;  // as in CallShape
  const Reducer* reducer = nullptr;
  UserReduction user;
  // A scan runs as an allgather, of whose segments each rank then combines those of lower ranks. Its input is packed by
  // itself, whatever it shares with the output.
  Prefix prefix = Prefix::none;
  Lists* lists = nullptr;  // where the call's lists are kept; outlives the call
};

// What became of a request: `reason` is why the host must take the call, nullptr when it is done with `code`.
struct Outcome {
  const char* reason = nullptr;
  int code = MPI_SUCCESS;
};

// Runs an eligible request, or says why not. The first eligible calls of a communicator are the host's; then it is set
// up, collectively. Throws nothing. `begin_ns`: of the call, 0 when nobody measures.
Outcome accelerate(Communicator& communicator, Request& request, std::uint64_t begin_ns);

// After the host has taken a call for which `communicator.timed` is set.
void end_host_call(Communicator& communicator);

// Sets up a communicator that waits for it, or that is set up for less; collective over it. Afterwards it is
// accelerated, or the host's for ever, or broken where a rank had failed before.
void set_up_now(Communicator& communicator, Extent extent);

// Slots of exchanges by pairs whose ranks have not agreed on another size.
inline constexpr std::size_t usual_slot_bytes = slot_bytes(2);
PairExchange::Problem pair_problem(const Communicator& communicator, const Request& request, std::size_t slot_bytes);

// By which way of a trial (CallShape::way) a request's call is planned; the same on all ranks.
int way_of(const Request& request);

// Whether a scan is the host's where it is the faster one; the same on all ranks.
bool scan_is_hosts(const Machinery& machinery, const Request& request);

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

// For what is thrown before a call has begun.

// Where the others leave the call to the host, this rank does so as well: true until a communicator is set up. The call
// counts as an eligible one, as it does with the others unless its arguments are none of Plait's. Where they set up at
// this call, they hear that this rank cannot.
bool stay_with_host(Communicator& communicator) noexcept;

// This rank cannot take part in it, and the others are told where they can hear. `communicator`: nullptr: there is
// none. Returns what the call is to return.
int leave_call(MPI_Comm comm, Communicator* communicator, const std::exception& exception) noexcept;

}  // namespace plait::plugin
