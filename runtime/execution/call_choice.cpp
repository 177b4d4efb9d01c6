#include "runtime/execution/call_choice.h"

#include "runtime/job/job.h"

namespace plait::runtime {

PairExchange::Problem pair_problem(const Communicator& communicator, const Request& request, std::size_t slot_bytes) {
  return {.collective = request.call.collective,
          .rank = communicator.rank,
          .ranks = communicator.ranks,
          .root = request.call.root,
          .sends = &request.lists->sends,
          .receives = &request.lists->receives,
          .slot_bytes = slot_bytes,
          .hosts = nullptr};
}

}  // namespace plait::runtime
