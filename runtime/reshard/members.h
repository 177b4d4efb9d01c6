// Those ranks that a resharding concerns, among themselves: whoever brings the ranks makes them so.
#pragma once

#include <functional>
#include <memory>

#include "core/status.h"
#include "runtime/execution/communicator.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {

class Members {
 public:
  virtual ~Members() = default;
  // Collective over the communicator that the program names, in whose order they are numbered. Called once, on all
  // ranks. May throw after it where memory is short.
  virtual Status part(bool takes_part) = 0;
  // Both: of a rank that takes part.
  virtual Oob& oob() = 0;
  // Used within the life of this. Throws where memory is short; communicates with nobody.
  virtual std::unique_ptr<Communicator> make_communicator() = 0;
};

// All that part() needs memory of ours for; throws where it is short.
using MakeMembers = std::function<std::unique_ptr<Members>()>;

}  // namespace plait::runtime
