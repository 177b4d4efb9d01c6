#include "fused/ground/ground.h"

#include <utility>

#include "core/attempt.h"
#include "runtime/progress/progress.h"

namespace plait::fused {

Result<std::unique_ptr<Ground>> Ground::make(Oob& all, const MakeMembers& make_members) noexcept {
  std::unique_ptr<Ground> made;
  const Status connected = attempt([&]() -> Status {
    made.reset(new Ground);
    return made->connect(all, make_members);
  });
  if (!connected.ok()) return connected;
  return made;
}

Status Ground::connect(Oob& all, const MakeMembers& make_members) {
  const Status ready = attempt([&]() -> Status {
    members_ = make_members();
    return {};
  });
  if (Status status = all.go_on_together(ready); !status.ok()) return status;
  if (Status status = members_->part(true); !status.ok()) return status;
  const Status known = attempt([&]() -> Status {
    communicator_ = members_->make_communicator();
    return {};
  });
  if (Status status = members_->oob().go_on_together(known); !status.ok()) return status;
  if (communicator_->ranks == 1) return {};
  Result<std::unique_ptr<Team>> connected = communicator_->connect(TeamExtent::all_calls, nullptr);
  if (!connected.ok()) return connected.status();
  communicator_->team = std::move(*connected);
  communicator_->road = Road::accelerated;
  return {};
}

Ground::~Ground() {
  if (communicator_ != nullptr && communicator_->team != nullptr) communicator_->progress.retire(*communicator_);
}

}  // namespace plait::fused
