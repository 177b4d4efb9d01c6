// Brings one kind of tensor across one boundary of a pipeline, from every rank of a stage to every rank of the next or
// of the one before: one transfer after the other, each in the background. Not thread-safe.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <string>

namespace plait::perf {

enum class Layout {
  sharded,     // each rank of either stage holds its share of the tensor
  replicated,  // each rank of the sending stage holds its share, each of the receiving one all of it
};

// Of the ranks 0 .. stages * ranks - 1 of MPI_COMM_WORLD, a stage's are neighbours.
struct Crossing {
  int from = 0, to = 0;  // stages
  int ranks = 1;         // of a stage
  std::size_t share_bytes = 1;
  Layout layout = Layout::sharded;

  std::size_t taken_bytes() const {
    return layout == Layout::replicated ? share_bytes * static_cast<std::size_t>(ranks) : share_bytes;
  }
};

class Channel {
 public:
  virtual ~Channel() = default;
  // Begins a transfer; the last one has ended. On a rank of the sending stage `buffer` is its share, which stays as it
  // is until the end; on one of the receiving stage it has room for taken_bytes().
  virtual void start(void* buffer) = 0;
  virtual bool ended() = 0;  // and moves it on
};

enum class Road { host, plait };

// Collective over MPI_COMM_WORLD, in the same order on all ranks; useful only on the ranks of the two stages (nullptr
// elsewhere). Nullptr everywhere with `why` where there is no such road.
std::unique_ptr<Channel> make_channel(Road road, const Crossing& crossing, int tag, std::string& why);

}  // namespace plait::perf
