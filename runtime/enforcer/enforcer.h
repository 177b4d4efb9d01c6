// Keeps a communicator's calls to the job's schedule: each is cut into its pieces, which run in the schedule's order on
// their channels (Mahajan et al., NSDI '23, section 4.5 and Pseudocode 2). A call is complete when its last piece is.
//
// Which call is which operation of the schedule follows from the order and the sizes of the communicator's calls, which
// MPI guarantees to be the same on all ranks; of persistent ones, which have an enforcer of their own, from the order
// of their starts on which the ranks have agreed (start_order.h). The order of the pieces need not be: pieces that the
// schedule lets overtake pieces of earlier calls have connections of their own, and among those that share some, all
// ranks run them as the program makes the calls. So the schedule's order is each rank's own to keep: where the program
// waits for a call whose pieces stand behind those of a call that it has not made, and where nothing moves, pieces
// begin before their turn (docs/decisions/019-enforced-schedules.md has the argument that nothing waits for ever).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"
#include "plan/step/schedule_file.h"
#include "runtime/enforcer/known_schedule.h"
#include "runtime/enforcer/schedule_control.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/grouping.h"
#include "runtime/layer.h"
#include "runtime/progress/awaited_calls.h"
#include "runtime/progress/operation.h"

namespace plait::runtime {

// What an enforcer's ranks talk over, beside the communicator's own connections.
struct EnforcerConnections {
  std::vector<PieceTrack> tracks;
  std::vector<std::unique_ptr<Team>> teams;  // one for each track, where one piece runs at a time
  std::unique_ptr<Team> talk;                // of the control; nullptr: there is none
};

class Enforcer final : public Grouping {
 public:
  // `communicator` is set up. `schedule`: nullptr: there is none yet; `control` says so then, else it is nullptr.
  Enforcer(Communicator& communicator, EnforcerConnections connections, std::unique_ptr<KnownSchedule> schedule,
           std::unique_ptr<ScheduleControl> control);
  ~Enforcer() override;
  Enforcer(const Enforcer&) = delete;
  Enforcer& operator=(const Enforcer&) = delete;

  void enlist(Operation& operation) override;
  void note_request(RequestKey request, const Operation& operation) noexcept override;
  bool takes_blocking(const Request& request) override;
  void note_wait_for_all() override { all_awaited_.store(true, std::memory_order_release); }

  Turn turn(OperationQueue& queue, bool may_call_host) override;
  Operation* take_ended(OperationQueue&) override { return std::exchange(ended_, nullptr); }
  const Status& failure() const override { return failure_; }
  void note_end(Operation& operation) override;

 private:
  // What runs on a track.
  struct Runner {
    Team* team = nullptr;
    Operation* operation = nullptr;  // nullptr: nothing
    int piece = 0;
    Execution execution;
  };
  struct OwnPiece {
    Operation* operation = nullptr;  // nullptr: there is none
    int piece = 0;
  };
  // What this rank has posted of the epoch.
  struct Posted {
    std::uint64_t end = 0;  // number after that of the last call
    bool left = false;      // no more of them will come
  };

  // Of the busy thread.
  Turn fail(const Status& status);
  void give_up(const Status& cause);
  void match(Operation& operation);
  void look_at_new(OperationQueue& queue);
  void note_posted_call(const Operation& operation);
  bool consults_before(const Operation& head) const;
  Turn consult(OperationQueue& queue, bool may_call_host);
  void begin_epoch(const OperationQueue& queue);
  bool begins_epoch(const Operation& head) const;
  Operation* find(const OperationQueue& queue, std::uint64_t call) const;
  Turn run_plainly(Operation& head);
  Status look_for_failures();
  Turn next_turn(OperationQueue& queue, bool may_call_host);

  bool has_begun(const Operation& operation, int piece) const;
  bool may_run(const Operation& operation, int piece) const;
  OwnPiece next_on(const OperationQueue& queue, std::size_t track) const;
  Turn begin_piece(Runner& runner, Operation& operation, int piece, bool may_call_host);
  Turn end_piece(Runner& runner, bool may_call_host);
  Turn move_pieces(bool may_call_host);
  void pass_what_has_run(const OperationQueue& queue);
  bool heads_all_its_channels(const Operation& operation, int piece) const;
  Turn begin_in_order(const OperationQueue& queue, bool may_call_host);

  bool waits_behind_unmade(const Operation& operation) const;
  void note_blocking_heads();
  std::uint64_t may_overrun(const OperationQueue& queue);
  Turn begin_before_turn(const OperationQueue& queue, bool may_call_host);

  Communicator& communicator_;

  bool calls_host_ = false;  // some piece does

  // Of the posting thread.
  std::uint64_t numbers_given_ = 0;
  bool other_call_ = false;  // since what was enlisted last

  // Between the two, and those that wait.
  AwaitedCalls awaited_;
  std::atomic<bool> all_awaited_{false};

  // Of the busy thread.
  EnforcerConnections connections_;
  std::unique_ptr<KnownSchedule> schedule_;   // nullptr: none
  std::unique_ptr<ScheduleControl> control_;  // nullptr: the schedule was given
  std::uint64_t iteration_begin_ns_ = 0;      // when the first call of the iteration at hand was made
  std::vector<Runner> runners_;               // by track
  std::uint64_t epoch_ = 0;                   // that the queue's first operation is of
  Posted posted_;
  std::uint64_t moved_ns_ = 0;         // when something moved last
  std::vector<std::uint8_t> blocked_;  // by operation: how often it was waited for in vain; too often: not any more
  std::uint32_t idle_turns_ = 0;
  Operation* ended_ = nullptr;
  bool given_up_ = false;
  Status failure_;
};

// Collective over a communicator that is set up, with the same schedule: keeps its calls to MPI_COMM_WORLD's part of
// that order from now on. Where that cannot be, on any rank, on none, and why. Blocks.
Status enforce(Communicator& communicator, const plan::step::StepSchedule& schedule,
               plan::step::CallOrder order) noexcept;
// The same with a schedule that is made from the communicator's own calls (schedule_control.h). `source`: of rank 0.
// `prepare`: usual_prepare().
Status enforce_own(Communicator& communicator, std::unique_ptr<ScheduleSource> source,
                   ScheduleControl::Prepare prepare) noexcept;
// As the communicator's planner says, which outlives it.
ScheduleControl::Prepare usual_prepare(const Communicator& communicator);
// Of what the recorder sees, the calls of that order; nullptr on all ranks but the first. Starts a thread. Throws where
// memory is short.
std::unique_ptr<ScheduleSource> own_author(const Communicator& communicator, plan::step::CallOrder order);

}  // namespace plait::runtime
