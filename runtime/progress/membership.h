// What a grouping keeps with an operation that groups may take.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plan/overlap/overlap_plan.h"
#include "runtime/layer.h"

namespace plait::runtime {

struct FusedPlans;    // fusion/fused_plans.h
struct EnforcedCall;  // enforcer/enforced_plans.h

// Of an allreduce that groups may take, by the job's overlap plan or by one that is learned; or of a call that the
// job's schedule may say the order of.
struct Membership {
  // From its posting.
  bool enlisted = false;
  bool all_done_before = false;  // RecordedCall::all_done_before
  std::uint64_t number = 0;      // of the communicator's calls that are enlisted, ascending
  std::uint64_t posted_ns = 0, computed_ns = 0;
  std::shared_ptr<FusedPlans> plans;  // nullptr: there was no plan yet
  // When the program last found a call of the communicator complete. Its own, as the communicator may be gone by then.
  std::shared_ptr<std::atomic<std::uint64_t>> found_ns;

  // By a schedule (enforcer/).
  bool after_other = false;  // before it the program made a call that is not in the queue
  bool consulted = false;    // the ranks have talked about the schedule before it
  std::uint64_t epoch = 0;   // MatchedCall::epoch; 0: it is none of the schedule's
  std::uint64_t call = 0;    // MatchedCall::number
  std::shared_ptr<const EnforcedCall> enforced;
  std::uint64_t begun = 0, done = 0;  // bits: pieces that run or have run; that have
  bool laid_out = false;

  // From when the plan's place was looked for.
  bool assigned = false;
  bool alone = false;      // it runs by itself whatever comes: its group is only it, or lacks calls before it
  std::uint64_t unit = 0;  // operations of one unit may run as one; 0: the plan says nothing of it
  std::size_t group = 0;   // of the plan
  std::size_t left = 1;    // calls of the plan's group from this one on
  CommunicationShare share{.threads = 1, .duty = 0};  // of the helper threads meanwhile; a duty of 0: as always

  // From its turn.
  bool counted = false, entered = false;
  std::uint64_t begin_ns = 0;      // where it runs by itself
  const char* plan = nullptr;      // by which its group ran; interned
  const char* channels = nullptr;  // likewise
};

}  // namespace plait::runtime
