// MPI as the command-line tool needs it, without mpi.h.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// Whether the environment says that a launcher (mpirun, mpiexec, srun) started this process as a rank.
bool launched_by_mpirun();

// Owns MPI: initialises it on start, finalises it on destruction. At most one a process, used by one thread.
// All members but rank(), ranks(), library() and wall_seconds() are collective over all ranks and block.
class MpiSession {
 public:
  static Result<MpiSession> start();
  MpiSession(MpiSession&& other) noexcept
      : rank_(other.rank_), ranks_(other.ranks_), owner_(std::exchange(other.owner_, false)) {}
  MpiSession& operator=(MpiSession&&) = delete;
  ~MpiSession();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  // Everybody's bytes, by rank; all ranks give equally many.
  std::vector<std::byte> gather_bytes(std::span<const std::byte> mine);
  // Everybody's text, by rank, on rank 0; nothing elsewhere. Lengths may differ; together less than 2 GiB.
  std::vector<std::string> gather_text_at_root(std::string_view mine);
  // Rank 0's text on every rank; less than 2 GiB.
  std::string text_of_root(std::string_view mine);
  void barrier();
  // The largest of what the ranks give for each place; all give equally many.
  std::vector<double> maxima(std::span<const double> mine);
  // Rank 0 writes the line to standard error. No rank returns before: launchers end a job at the first rank that fails,
  // which would else swallow it.
  void say_once(std::string_view line);
  // The MPI library, in one line of its own words. Not collective.
  std::string library() const;
  // "Open MPI v4.1.4": what a tuning table's fingerprint names. Not collective.
  std::string library_release() const;
  // Seconds since some moment in the past.
  double wall_seconds() const;

 private:
  MpiSession(int rank, int ranks) : rank_(rank), ranks_(ranks), owner_(true) {}

  int rank_;
  int ranks_;
  bool owner_;  // false once moved from
};

}  // namespace plait::tuner
