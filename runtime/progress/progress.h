// Moves operations on: non-blocking collectives.
//
// An operation is posted by any thread, which hands it over without waiting. From then on it belongs to whoever runs
// progress(): one thread at a time, others go away at once. The operations of a communicator run one after the other in
// the order of posting, which MPI guarantees to be the same on all ranks; those of different communicators side by
// side, and so do its persistent ones, in the order on which the ranks agree (start_order.h).
#pragma once

#include <atomic>

#include "runtime/execution/communicator.h"
#include "runtime/execution/grouping.h"
#include "runtime/layer.h"
#include "runtime/progress/host_turns.h"
#include "runtime/progress/mailbox.h"
#include "runtime/progress/operation.h"

namespace plait::runtime {

class PersistentSpace;  // persistent_space.h

// One for a rank. Outlives its communicators, operations and spaces.
class Progress {
 public:
  struct Surroundings {
    // The program is within a wait: moves on what is posted here.
    void (*turn_from_host)(Progress& progress) = nullptr;
    // The same, and all that the host has besides; where nothing moves another process gets the core.
    void (*turn_of_wait)(Progress& progress) = nullptr;
    // Whether the program's waits for an operation begin here (complete_untold).
    bool (*waits_come_here)() = nullptr;
  };
  constexpr explicit Progress(Surroundings surroundings) : surroundings_(surroundings) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Takes on an operation that is prepared. Wait-free.
  void hand_over(Operation& operation);
  // The same for a start of a persistent one: it runs once all ranks have started it.
  void hand_over_start(Operation& operation);

  // Persistent collectives whose operations are moved on from then on and until then.
  void add_space(PersistentSpace& space);
  void remove_space(PersistentSpace& space);

  // For a wait: moves everything on until this operation is complete, for a while. True when it is and its request has
  // not been told and will not be, so that the host is not needed; only where there is one thread.
  bool complete_untold(Operation& operation);

  // This rank cannot run a call that the others run: the communicator is broken with that error, and they are told.
  void leave_out(Communicator& communicator, int error);

  // One turn of everything that is posted; 0 when nothing moved. Does not block. A few nanoseconds when there is
  // nothing. `may_call_host`: false in a thread that must not call the host. Throws nothing.
  int progress(bool may_call_host = true) noexcept;

  // Whether the operation is complete and its request knows.
  bool told(const Operation& operation) const;
  // Whether there are operations that are not complete.
  bool anything_posted() const { return posted_.load(std::memory_order_seq_cst) != 0; }

  // Waits until that is so, which follows from what is posted.
  void wait_until(const std::atomic<bool>& done);
  // Waits until a communicator has no operations: its blocking calls come after those that were posted before.
  void drain(Communicator& communicator);
  // The same, before its state is destroyed: nobody looks at it any more.
  void retire(Communicator& communicator);

  // When the program is within the host, where somebody wants to know (Job::watches_waits). Thread-safe.
  HostTurns host_turns;

 private:
  bool enter();
  void leave() { busy_.store(false, std::memory_order_release); }
  void take_off_worklist(const Communicator& communicator);
  void arrive(Operation& operation);
  void tell(Operation& operation);
  void tell_awaited();
  void conclude(Operation& operation);
  void end(Operation& operation);
  void take_out(OperationQueue& queue, Operation& operation, bool may_call_host);
  bool runs_by_itself(Communicator& communicator, bool may_call_host, Grouping::Turn& turn);
  int run_queue(Communicator& communicator, bool may_call_host);
  void guarded_run(Communicator& communicator) noexcept;
  bool take_started(PersistentSpace& space, bool may_call_host);
  int run_turn(bool may_call_host);
  int turn(bool may_call_host) noexcept;

  const Surroundings surroundings_;
  std::atomic<int> posted_{0};     // operations that are not complete
  std::atomic<bool> busy_{false};  // some thread runs progress(), or this one is within it
  // It may come to its end without its request being told: during its posting, and while a wait of ours waits for it.
  // When it has, it counts as posted until somebody waits for it or the next turn tells its request.
  Operation* awaited_ = nullptr;
  Mailbox arrivals_;
  Mailbox endings_;  // of a thread that must not call the host: complete but for that

  // Both belong to the thread that is busy. They are lists of what is there already: whoever moves operations on may
  // not be in want of memory.
  Communicator* worklist_ = nullptr;   // with operations
  PersistentSpace* spaces_ = nullptr;  // all that are alive
};

}  // namespace plait::runtime
