// Brings texts of any length to rank 0 of MPI_COMM_WORLD, at the end of the job.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace plait::plugin {

// What a rank has to say; where it has no memory for that, nothing: the others wait for its text.
template <class Make>
std::string text_or_nothing(Make&& make) noexcept {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

// Collective over MPI_COMM_WORLD. On rank 0 calls `take(rank, text)` for each rank in turn, so that only one text is
// held at a time. To be used when the program has no more messages under way. Throws nothing: what rank 0 has no memory
// for is left out, and so is what `take` throws at.
void gather_text(const std::string& mine, const std::function<void(int, std::string)>& take);

}  // namespace plait::plugin
