// A schedule's operations as a communicator runs them: each one's proven rewriting, bound to the sizes of its calls
// piece by piece. For the thread that posts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "plan/choose/planner.h"
#include "plan/step/schedule_file.h"
#include "runtime/execution/request.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Of one call, on this rank. All pieces work in the cells of the whole.
struct EnforcedCall {
  BoundSchedule whole;
  std::vector<BoundSchedule> pieces;  // as in the schedule, and one more: it brings results to where they belong
  std::vector<std::uint64_t> after;   // by piece, but for that one: bits of those that must end before
  const char* plan = "";              // interned
  const char* channels = "";          // likewise
};

class EnforcedPlans {
 public:
  // The same on all ranks. Fails (unsupported, invalid) with the operation that cannot run so here, or where pieces
  // would wait for one another. `planner` outlives it.
  static Result<std::unique_ptr<EnforcedPlans>> make(Planner& planner, int rank,
                                                     const plan::step::StepSchedule& schedule);

  // Of a call that is that operation by its collective and size. nullptr: it cannot run by the schedule, and on no
  // rank.
  std::shared_ptr<const EnforcedCall> find(int operation, const Request& request);

 private:
  // Of a root and an operator.
  struct Rewritten {
    int operation = 0, root = 0;
    bool commutative = true;
    std::optional<Semantics> semantics;  // nothing: it cannot be run so
    Schedule schedule;                   // this rank's
    int pieces = 0;
    bool whole = false;  // the planner's plan, in one piece
  };
  struct Bound {
    int operation = 0, root = 0;
    bool commutative = true, in_place = false;
    std::size_t count = 0, element_bytes = 0;
    std::shared_ptr<const EnforcedCall> call;
  };
  using After = std::vector<std::vector<int>>;  // by piece

  EnforcedPlans(Planner& planner, int rank) : planner_(planner), rank_(rank) {}
  Result<After> rewrite(int operation, const Call& call, Rewritten& made) const;
  Result<After> leave_whole(const Call& call, Rewritten& made) const;
  const Rewritten& rewritten(int operation, const Call& call);
  std::shared_ptr<const EnforcedCall> bind_to(const Rewritten& rewritten, const Request& request) const;

  Planner& planner_;
  int rank_;
  std::vector<plan::step::ScheduledOperation> operations_;
  std::vector<After> after_;                                 // by operation
  std::vector<std::unique_ptr<const Rewritten>> rewritten_;  // once asked for
  std::vector<Bound> bound_;
};

}  // namespace plait::runtime
