// Brings texts of any length to rank 0 of MPI_COMM_WORLD, at the end of the job.
#pragma once

#include <functional>
#include <string>

namespace plait::plugin {

// Collective over MPI_COMM_WORLD. On rank 0 calls `take(rank, text)` for each rank in turn, so that only one text is
// held at a time. To be used when the program has no more messages under way.
void gather_text(const std::string& mine, const std::function<void(int, std::string)>& take);

}  // namespace plait::plugin
