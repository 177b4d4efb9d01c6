// Collectives within groups of a job's ranks, each by a plan of its own, without mpi.h: what `plait probe` measures.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/status.h"

namespace plait::tuner {

// A communicator of some ranks of the job, made by MPI's own names, so that libplait.so takes part. Used by one thread;
// freed on destruction, which must come before the session's. All members but rank() and ranks() are collective over
// the group and block; a failure of MPI ends the job (MPI_ERRORS_ARE_FATAL).
class MpiGroup {
 public:
  // Collective over all ranks of the job: those of the same colour come together, in the order of their ranks. A rank
  // with a negative colour is in no group.
  static MpiGroup split(int colour);
  MpiGroup(MpiGroup&& other) noexcept;
  MpiGroup& operator=(MpiGroup&&) = delete;
  ~MpiGroup();

  bool member() const;
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // What may carry its data (plait_set_channels), before anything else here. `invalid` on all ranks where that is no
  // list of channels.
  Status take_channels(const std::string& channels);
  // From now on the collectives to which the plan applies run by it (plait_set_plan). `invalid` on all ranks where none
  // can; one of them has printed why.
  Status take_plan(const std::string& plan);
  void barrier();
  void broadcast(std::byte* data, std::size_t bytes, int root);
  // Sums of 32-bit integers, on the root; `bytes` is a multiple of 4.
  void reduce(const std::byte* data, std::byte* sums, std::size_t bytes, int root);
  // The largest of what the members give for each place, in place of their own; all give equally many.
  void maxima(std::span<double> values);
  // Everybody's `bytes`, by rank.
  void all_gather(const std::byte* mine, std::byte* all, std::size_t bytes);

 private:
  explicit MpiGroup(void* communicator);

  void* communicator_;  // an MPI_Comm of its own; null where this rank is in no group
  int rank_ = 0, ranks_ = 0;
};

// As MpiGroup::take_plan, for MPI_COMM_WORLD; an empty text lets Plait choose again. Collective over all ranks of the
// job.
Status take_plan_of_job(const std::string& plan);

// Collective over all ranks of the job; blocks. Ranks that come early sleep meanwhile instead of looking for the others
// all the time, so that what some ranks measure is not slowed by those that wait here.
void meet_quietly();

}  // namespace plait::tuner
