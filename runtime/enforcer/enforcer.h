// Keeps a communicator's calls to the job's schedule: each is cut into its pieces, which run in the schedule's order on
// their channels (Mahajan et al., NSDI '23, section 4.5 and Pseudocode 2). A call is complete when its last piece is.
//
// Which call is which operation of the schedule follows from the order and the sizes of the communicator's calls, which
// MPI guarantees to be the same on all ranks. A piece that is to run before pieces of an earlier call may stand in the
// way of a rank that waits for that one before it makes the later call. So the ranks vote on every such call, in the
// order of the calls: it and what comes after run by the schedule once all ranks have made it; where a rank waits for
// what it would overtake, it and the rest of its iteration run as they would without a schedule, on all ranks;
// where that goes on iteration after iteration, it is tried in fewer of them
// (docs/decisions/019-enforced-schedules.md has the argument that nothing waits for ever).
#pragma once

#include <array>
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
#include "runtime/progress/consultation.h"
#include "runtime/progress/operation.h"

namespace plait::runtime {

// What an enforcer's ranks talk over, beside the communicator's own connections.
struct EnforcerConnections {
  std::vector<std::uint32_t> channels;       // by team: the schedule's channels that its pieces are on, as bits
  std::vector<std::unique_ptr<Team>> teams;  // one piece runs at a time on each
  std::unique_ptr<Team> votes;
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
  // A piece under way.
  struct Runner {
    Team* team = nullptr;
    std::uint32_t channels = 0;
    Operation* operation = nullptr;  // nullptr: none
    int piece = 0;
    Execution execution;
  };
  // What this rank has posted.
  struct Posted {
    std::uint64_t end = 0;  // number after that of the last call that follows the schedule
    bool left = false;      // no more of them will be made in this epoch
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
  bool runs_plainly(const Operation& head) const;
  bool follows(const Operation& operation) const;
  Operation* find(const OperationQueue& queue, std::uint64_t call) const;
  Turn run_plainly(Operation& head);
  Status look_for_failures();
  Turn next_turn(OperationQueue& queue, bool may_call_host);

  Runner& runner_of(const plan::step::CallPiece& piece);
  bool may_begin(const plan::step::CallPiece& piece, const Operation& operation, const Runner& runner) const;
  Turn begin_piece(Runner& runner, Operation& operation, int piece, bool may_call_host);
  Turn end_piece(Runner& runner, bool may_call_host);
  Turn move_pieces(bool may_call_host);
  Turn begin_pieces(const OperationQueue& queue, bool may_call_host);

  bool is_stuck(const Operation& operation) const;
  bool stands_still(const OperationQueue& queue) const;
  bool waits_too_long(const OperationQueue& queue, std::uint64_t now_ns) const;
  bool waits_in_vain(const OperationQueue& queue, std::uint64_t now_ns) const;
  Turn vote(const OperationQueue& queue, bool may_call_host);
  Turn end_vote();
  void leave_from(std::uint64_t call);

  Communicator& communicator_;

  bool calls_host_ = false;  // some piece does

  // Of the posting thread.
  std::uint64_t numbers_given_ = 0;
  bool other_call_ = false;  // since what was enlisted last

  // Between the two, and those that wait.
  AwaitedCalls awaited_;
  std::atomic<bool> all_awaited_{false};
  std::atomic<std::uint64_t> turns_at_post_{0};  // HostTurns::in_all() at the last post

  // Of the busy thread.
  EnforcerConnections connections_;
  std::unique_ptr<KnownSchedule> schedule_;   // nullptr: none
  std::unique_ptr<ScheduleControl> control_;  // nullptr: the schedule was given
  std::uint64_t iteration_begin_ns_ = 0;      // when the first call of the iteration at hand was made
  std::vector<Runner> runners_;               // one for each team
  Consultation votes_;
  std::uint64_t epoch_ = 0;                   // that the queue's first operation is of
  std::uint64_t until_ = 0, again_from_ = 0;  // calls from the one on run plainly, from the other on by the schedule
  std::uint64_t subject_ = 0;                 // the first call that overtakes and on which the ranks have not voted
  std::uint64_t away_ = 1;                    // iterations until it is kept to again, should this one be left
  Posted posted_;
  bool voting_ = false;
  std::array<std::int64_t, 2> numbers_{};      // 1 where every rank has posted the subject; -1 where one waits
  std::uint64_t since_ns_ = 0, voted_ns_ = 0;  // calls wait for the vote; 0: none does. Of the last vote since then
  std::uint32_t idle_turns_ = 0;
  Operation* ended_ = nullptr;
  bool given_up_ = false;
  Status failure_;
};

// Collective over a communicator that is set up, with the same schedule: keeps its calls to it from now on. Where that
// cannot be, on any rank, on none, and why. Blocks.
Status enforce(Communicator& communicator, const plan::step::StepSchedule& schedule) noexcept;
// The same with a schedule that is made from the communicator's own calls (schedule_control.h). `source`: of rank 0.
// `prepare`: usual_prepare().
Status enforce_own(Communicator& communicator, std::unique_ptr<ScheduleSource> source,
                   ScheduleControl::Prepare prepare) noexcept;
// As the communicator's planner says, which outlives it.
ScheduleControl::Prepare usual_prepare(const Communicator& communicator);
// Of what the recorder sees; nullptr on all ranks but the first. Starts a thread. Throws where memory is short.
std::unique_ptr<ScheduleSource> own_author(const Communicator& communicator);

}  // namespace plait::runtime
