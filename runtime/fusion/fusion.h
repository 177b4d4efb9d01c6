// Runs a communicator's non-blocking allreduces in the groups of the job's overlap plan, or of one that is made from
// the program's own steps.
//
// Which calls a group may take follows from the order and the sizes of the communicator's calls, which MPI guarantees
// to be the same on all ranks; whether a group is full when it starts does not, because each rank waits when it likes.
// So the ranks agree, by a reduction of two numbers over the communicator's own connections, before a group of several
// calls starts: all of it in one reduction, or each of its calls by itself (docs/decisions/012-agreed-groups.md).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/status.h"
#include "plan/overlap/overlap_plan.h"
#include "runtime/execution/execution.h"
#include "runtime/execution/grouping.h"
#include "runtime/execution/request.h"
#include "runtime/fusion/fused_plans.h"
#include "runtime/fusion/overlap_counts.h"
#include "runtime/fusion/overlap_learner.h"
#include "runtime/fusion/step_matcher.h"
#include "runtime/layer.h"
#include "runtime/progress/awaited_calls.h"
#include "runtime/progress/consultation.h"
#include "runtime/progress/operation.h"

namespace plait::runtime {

class Fusion : public Grouping {
 public:
  // `plan`: nullptr: it is learned.
  Fusion(Communicator& communicator, std::shared_ptr<const OverlapPlan> plan);
  ~Fusion() override;
  Fusion(const Fusion&) = delete;
  Fusion& operator=(const Fusion&) = delete;

  // ---- For the thread that posts, in the order of posting ----

  void enlist(Operation& operation) override;
  void note_request(RequestKey request, const Operation& operation) noexcept override;
  void note_posted() override;
  // The program was told that the operation is complete, and lets go of it. Thread-safe.
  static void note_found_complete(const Operation& operation);

  // ---- For the thread that is busy with progress() ----

  Turn turn(OperationQueue& queue, bool may_call_host) override;
  Operation* take_ended(OperationQueue& queue) override;
  const Status& failure() const override { return failure_; }
  void note_end(Operation& operation) override;

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
    std::size_t next_call = 0;
    Kind kind;
  };
  // What a turn saw of a group at the head.
  struct Look {
    std::uint64_t unit = 0;  // 0: none
    std::size_t arrived = 0;
    friend bool operator==(const Look&, const Look&) = default;
  };
  enum class Phase : std::uint8_t { idle, agreeing, agreed, running, asking };

  void prepare();
  bool can_consult() const;
  std::shared_ptr<FusedPlans> fused_plans(std::size_t element_bytes);

  bool asks(const Operation& head);
  Turn begin_question(bool may_call_host);
  Turn end_question(OperationQueue& queue, bool may_call_host);
  void take_answer(std::uint64_t call);
  void note_verdict();

  void assign(OperationQueue& queue);
  void assign(Operation& operation);
  Turn run_by_itself(Operation& head);
  Turn next_turn(OperationQueue& queue, bool may_call_host);
  Turn begin_group(OperationQueue& queue, bool may_call_host);
  Turn begin_agreement(OperationQueue& queue, bool may_call_host);
  Turn end_agreement(OperationQueue& queue, bool may_call_host);
  Turn begin_run(OperationQueue& queue, bool may_call_host);
  void bring_from_device(OperationQueue& queue);
  Turn end_run(OperationQueue& queue);
  Result<bool> progress_running(bool may_call_host);
  bool running_needs_host() const;
  Turn fail(const Status& status);
  bool may_enter(const Operation& head, std::size_t arrived, bool closed, bool runnable);
  bool program_waits() const;
  bool waits_for_these(const Look& look);

  Communicator& communicator_;

  // Of the posting thread.
  std::uint64_t numbers_given_ = 0;
  std::uint64_t left_mpi_ns_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> found_ns_;  // Membership::found_ns
  const Team* prepared_for_ = nullptr;
  std::vector<std::shared_ptr<FusedPlans>> fused_;  // by element size, of the plan at hand
  bool short_of_memory_ = false;                    // for them: this rank's groups run call by call

  // Handed from the posting thread to the other with the operations.
  Consultation agreement_, exchange_;  // the latter of a learner

  // Between the two, and those that wait.
  mutable std::mutex guard_;  // of the next one
  std::shared_ptr<const OverlapPlan> published_;
  AwaitedCalls awaited_;
  std::atomic<std::uint64_t> turns_at_post_{0};  // HostTurns::in_all() at the last post

  // Of the busy thread.
  std::shared_ptr<const OverlapPlan> plan_;  // nullptr: none yet
  std::unique_ptr<OverlapLearner> learner_;  // nullptr: the plan was given
  std::unique_ptr<StepMatcher> matcher_;     // of the plan
  std::size_t first_counted_ = 0;            // of the plan's groups, among all that are counted
  OverlapCounts::Place place_;               // of what was learned
  std::uint64_t units_ = 0;
  Open open_;
  Phase phase_ = Phase::idle;
  std::uint64_t seen_unit_ = 0, alone_unit_ = 0;
  std::uint64_t since_ns_ = 0;  // of the last agreement about that unit, or of its first sight
  bool full_ = false, wish_ = false;
  Look awaited_look_;                      // the last one, where the program waited
  std::array<std::int64_t, 2> numbers_{};  // calls that every rank has posted; -1 where a rank waits for one
  std::vector<double> question_;           // values of it; those before asked_ are answered
  std::size_t asked_ = 0;
  std::uint64_t asked_ns_ = 0;
  std::shared_ptr<FusedPlans> run_;  // nullptr: no group runs
  std::size_t run_group_ = 0;
  Request run_request_;
  Execution run_execution_;
  std::size_t ended_ = 0;  // calls of the group that was agreed on
  Status failure_;
};

// What says how the communicator's operations run; made now where the job fuses and it has none. nullptr: nothing does.
// For the posting thread.
Grouping* grouping_of(Communicator& communicator);

}  // namespace plait::runtime
