// Cross-mesh resharding: what plait_reshard_create() makes. Plans are made by plan/reshard, proven, and run on
// connections of their own, so that a plan's messages never meet those of other calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "runtime/execution/communicator.h"
#include "runtime/execution/request.h"
#include "runtime/execution/staging.h"
#include "runtime/device/call_memory.h"
#include "runtime/layer.h"
#include "runtime/progress/operation.h"
#include "runtime/reshard/arguments.h"
#include "runtime/reshard/members.h"
#include "runtime/reshard/reshard_plan.h"
#include "tl/engine.h"

namespace plait::runtime {

class Resharding {
 public:
  // Collective over `all`, the ranks of the communicator that the program names; blocks. All ranks succeed or all fail;
  // a rank without a complaint of its own has that of the first one with one.
  static Result<std::unique_ptr<Resharding>> make(Oob& all, const ReshardArguments& arguments,
                                                  const MakeMembers& make_members);
  ~Resharding();
  Resharding(const Resharding&) = delete;
  Resharding& operator=(const Resharding&) = delete;

  // Blocks. Returns a code of the caller's, which has not been raised. Allocates nothing, but what a channel takes.
  int execute(const void* source, void* destination);
  // The same for an operation of communicator()'s, which is handed over then. Precondition: is_shared(), and not
  // broken.
  void prepare(Operation& operation, const void* source, void* destination);

  // Whether this rank runs it with others; else it does what there is to do by itself, at once.
  bool is_shared() const { return communicator_ != nullptr && communicator_->team != nullptr; }
  // Precondition: is_shared().
  Communicator& communicator() { return *communicator_; }
  Members& members() { return *members_; }
  const reshard::Box& source_box() const { return source_box_; }
  const reshard::Box& destination_box() const { return destination_box_; }
  const std::string& description() const { return plan_.description; }  // JSON

 private:
  Resharding() = default;
  // Throws only before a step that all ranks take.
  static Result<std::unique_ptr<Resharding>> make_together(Oob& all, const ReshardArguments& arguments,
                                                           const MakeMembers& make_members);
  Status connect(Oob& all, const MakeMembers& make_members);
  Status plan();
  Status enlist();
  int fail(const Status& cause, int error);
  int run_alone(const void* source, void* destination);
  Staging lay_out_sides(Request& request, CallMemory& memory, const void* source, void* destination) const;

  ReshardProblem problem_;
  reshard::Box source_box_, destination_box_;
  std::unique_ptr<Members> members_;            // the ranks of both meshes
  std::unique_ptr<Communicator> communicator_;  // over them; nullptr: this rank has no part
  ReshardPlan plan_;
  CallMemory memory_, device_memory_;  // the latter for copies of data in memory of a device
  std::byte* scratch_ = nullptr;
  Engine alone_{{}, {}};  // of the one rank that has both sides
};

// Before the job ends, on all ranks: takes down the connections of plans that the program has not freed.
void finish_reshardings();

}  // namespace plait::runtime
