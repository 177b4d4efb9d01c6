// A resharding with buffers of its own, for measuring, without mpi.h. It is made by plait_reshard_*, of whatever
// libplait.so is in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"

namespace plait::tuner {

struct ReshardSpec {
  std::vector<int> source_dims, destination_dims;
  std::vector<int> source_ranks, destination_ranks;  // of MPI_COMM_WORLD
  std::string source_spec, destination_spec;
  std::vector<std::int64_t> shape;
  std::size_t element_bytes = 1;
  std::string options;  // as of plait_reshard_create()
};

// On MPI_COMM_WORLD; used by one thread.
class ReshardCall {
 public:
  // Collective; blocks. Allocates the buffers and fills the source: element i of the tensor is a function of i.
  static Result<ReshardCall> make(const ReshardSpec& spec);
  ReshardCall(ReshardCall&&) noexcept;
  ReshardCall& operator=(ReshardCall&&) = delete;
  ~ReshardCall();  // collective

  void spoil();  // the destination; local
  void run();    // once; blocks. A failure ends the job
  // Without blocking, and the wait for it.
  void run_by_request();
  bool right() const;  // whether this rank's destination is what run() had to leave there; local
  // What is planned, as JSON; "{}" on ranks outside both meshes.
  std::string description() const;

 private:
  struct State;
  explicit ReshardCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plait::tuner
