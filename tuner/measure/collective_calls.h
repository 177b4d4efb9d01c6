// A collective call with buffers of its own, for measuring, without mpi.h. It is made by MPI's own names, so that
// whatever stands before the MPI library takes part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "core/status.h"
#include "plan/model/collective.h"
#include "tuner/text/layer.h"
#include "tuner/text/measurement.h"

namespace plait::tuner {

// `bytes` are: of the vector (bcast, reduce, allreduce, scan, exscan), of the whole input vector of a rank
// (reduce_scatter(_block)), of one rank's contribution or share (allgather(v), gather(v), scatter(v)), of one pair's
// message (alltoall(v, w)); 0 for barrier.
struct CallSpec {
  Collective collective = Collective::barrier;
  std::size_t bytes = 0;
  int root = 0;  // of a rooted collective
  BufferKind buffers = BufferKind::ordinary;
};

// The size that can be measured nearest to what is wanted: reductions work on 32-bit integers, and reduce_scatter_block
// on equally many for each rank, so that theirs is rounded up. `invalid` when a buffer would exceed what MPI can count.
Result<std::size_t> measurable_bytes(Collective collective, std::size_t wanted, int ranks);

// On MPI_COMM_WORLD. Used by one thread. What every rank must give is a function of a key, the rank and the place, so
// that each rank can tell its whole result without asking the others: bytes for the collectives that move data, sums of
// 32-bit integers for those that reduce.
class CollectiveCall {
 public:
  // Allocates the buffers: `unavailable` where there is no memory. Precondition: measurable_bytes() gave spec.bytes.
  static Result<CollectiveCall> make(const CallSpec& spec, int rank, int ranks);

  // Fills the input by the key, which is the same on all ranks, and spoils the output. Local.
  void prepare(std::uint64_t key);
  // One call. Blocks as MPI's does; a failure ends the job (MPI_ERRORS_ARE_FATAL).
  void run();
  // The offset of the first byte of this rank's result that is not what run() had to leave there. Local.
  std::optional<std::size_t> first_wrong_byte() const;

 private:
  struct Release {
    std::byte* allocation;  // of MPI_Alloc_mem, where the memory is from there; else null
    Release() : allocation(nullptr) {}
    explicit Release(std::byte* of_mpi) : allocation(of_mpi) {}
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Release>;

  CollectiveCall(const CallSpec& spec, int rank, int ranks);
  void run_newer();
  bool allocate();
  bool reserve(Memory& memory, std::size_t bytes) const;
  std::size_t input_bytes() const;
  std::size_t output_bytes() const;
  // Of the message that `source` has for `destination`; 0 where it has the same for everybody.
  std::uint64_t message_key(int source, int destination) const;
  void fill_messages();
  std::optional<std::size_t> first_wrong_message_byte() const;
  std::optional<std::size_t> first_wrong_sum_byte() const;

  CallSpec spec_;
  int rank_;
  int ranks_;
  std::uint64_t key_ = 0;
  int count_;                                // as the call's argument
  std::vector<int> counts_, displacements_;  // of those that have lists of them
  Memory input_, output_;
};

}  // namespace plait::tuner
