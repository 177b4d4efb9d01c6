// What every fused plan stands on: the ranks of the communicator that the program names, connected anew, so that a
// plan's messages never meet those of other calls.
#pragma once

#include <memory>

#include "core/status.h"
#include "fused/layer.h"
#include "runtime/execution/communicator.h"
#include "runtime/oob/oob.h"
#include "runtime/reshard/members.h"

namespace plait::fused {

class Ground {
 public:
  // Collective over `all`; blocks. All ranks succeed or all fail.
  static Result<std::unique_ptr<Ground>> make(Oob& all, const MakeMembers& make_members) noexcept;
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
  ~Ground();

  int rank() const { return communicator_->rank; }
  int ranks() const { return communicator_->ranks; }
  Members& members() { return *members_; }
  // nullptr: this rank is alone.
  Team* team() const { return communicator_->team.get(); }

 private:
  Ground() = default;
  Status connect(Oob& all, const MakeMembers& make_members);

  std::unique_ptr<Members> members_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace plait::fused
