// How the other ranks of a team learn that this one has failed, whatever channel they wait on: their waits end. Within
// a node the shared memory tells it (tl/shm/failure_marks.h).
#pragma once

#include "core/status.h"
#include "runtime/layer.h"

namespace plait::runtime {

// Of one team. Not thread-safe.
class FailureNotice {
 public:
  virtual ~FailureNotice() = default;
  FailureNotice() = default;
  FailureNotice(const FailureNotice&) = delete;
  FailureNotice& operator=(const FailureNotice&) = delete;

  // A glance, which may also move on what is on its way out of band.
  virtual void look() = 0;
  // Not ok once another rank has failed: peer_failed, with the rank and its reason; or peer_left, where that rank knows
  // no more than that a third one cut its connection, until the third one's reason is heard. Its address stays.
  const Status& heard() const { return heard_; }
  bool told() const { return told_; }  // by this rank
  // The first call counts, and only where no better reason was heard: then all know. Blocks for a tenth of a second at
  // most. What it needs is there before: the cause may be a lack of memory.
  virtual void tell(const Status& cause) noexcept = 0;

 protected:
  bool improves(Code code) const { return heard_.ok() || (heard_.code() == Code::peer_left && code != heard_.code()); }
  void hear(int rank, Code code, const char* reason) noexcept;

  Status heard_;
  bool told_ = false;
};

}  // namespace plait::runtime
