// Runs a communicator's non-blocking allreduces in the groups of the job's overlap plan.
//
// Which calls a group may take follows from the order and the sizes of the communicator's calls, which MPI guarantees
// to be the same on all ranks; whether a group is full when it starts does not, because each rank waits when it likes.
// So the ranks agree, by a reduction of two numbers over the communicator's own connections, before a group of several
// calls starts: all of it in one reduction, or each of its calls by itself (docs/decisions/012-agreed-groups.md).
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "plan/overlap/overlap_plan.h"
#include "plugin/operation.h"
#include "plugin/step_matcher.h"

namespace plait {

struct Machinery;

// One reduction of all calls of a group: its plan, and the memory that they are packed in. Used again step after step.
struct FusedRun {
  std::shared_ptr<const PreparedCall> prepared;
  std::size_t bytes = 0;
  bool needs_host = false;
  WorkMemory memory;
  Buffers buffers;
  std::atomic<bool> in_use{false};
};

class Fusion {
 public:
  Fusion(Communicator& communicator, const OverlapPlan& plan);

  // ---- For the thread that posts, in the order of posting ----

  // An allreduce that is eligible, prepared or the host's. Throws where memory is short.
  void enlist(Operation& operation);

  // ---- For the thread that is busy with progress() ----

  enum class Turn : std::uint8_t {
    by_itself,  // the first operation of the queue runs by itself
    waiting,
    moved,
    ended,  // so do the first `ended()` operations of the queue, whose results are given
    failed,
  };
  // Precondition: the queue's first operation is one of a group. `may_call_host` as for progress().
  Turn turn(OperationQueue& queue, bool may_call_host);
  std::size_t ended() const { return ended_; }
  const Status& failure() const { return failure_; }

 private:
  // Of calls that share a group: how they are reduced, and where.
  struct Kind {
    ReduceKernel kernel = nullptr;
    std::size_t element_bytes = 0;
    bool in_place = false;
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  // The group that the next call may join.
  struct Open {
    std::uint64_t unit = 0;  // 0: none
    std::size_t next_call = 0, bytes = 0, calls = 0;
    Kind kind;
  };
  enum class Phase : std::uint8_t { idle, agreeing, running };

  void prepare_agreement();
  std::shared_ptr<FusedRun> make_run(const Operation& last);
  FusedRun& unused_run(std::size_t group);

  Turn begin_agreement(OperationQueue& queue, bool may_call_host);
  Turn end_agreement(OperationQueue& queue);
  Turn begin_run(OperationQueue& queue, std::size_t calls);
  Turn end_run(OperationQueue& queue);
  Turn run_by_itself(OperationQueue& queue);
  Turn fail(const Status& status);
  bool may_enter(const Operation& head, std::size_t arrived, bool closed);

  Communicator& communicator_;
  const OverlapPlan& plan_;

  // Of the posting thread.
  StepMatcher matcher_;
  std::uint64_t units_ = 0;
  Open open_;
  std::vector<std::vector<std::shared_ptr<FusedRun>>> runs_;  // by group

  // Handed from the posting thread to the other with the operations.
  const Machinery* prepared_for_ = nullptr;
  std::shared_ptr<const PreparedCall> agreement_;
  bool agreement_needs_host_ = false;
  WorkMemory agreement_memory_;

  // Of the busy thread.
  Phase phase_ = Phase::idle;
  std::uint64_t seen_unit_ = 0, alone_unit_ = 0;
  std::uint64_t since_ns_ = 0;  // of the last agreement about that unit, or of its first sight
  bool full_ = false, wish_ = false;
  std::array<std::int64_t, 2> numbers_{};  // calls that every rank has posted; -1 where a rank waits for one
  Buffers agreement_buffers_;
  std::shared_ptr<FusedRun> run_;
  std::size_t ended_ = 0;
  Status failure_;
};

// What the communicator has of it; nullptr: the job has no overlap plan. For the posting thread.
Fusion* fusion_of(Communicator& communicator);

// ---- Requests of groups that are not full, so that a wait for one begins its group. Thread-safe ----

void note_open_request(const Communicator& communicator, MPI_Request request);
void forget_open_requests(const Communicator& communicator);
// A few nanoseconds where there are none.
void note_wait_for(MPI_Request request);

}  // namespace plait
