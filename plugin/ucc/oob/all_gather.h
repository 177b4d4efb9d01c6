// The one thing that ranks can do out of band where UCC brings them: each gives as many bytes, all get those of all. It
// does not block; whoever started it looks again and again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/layer.h"

namespace plait::plugin {

enum class Turn : std::uint8_t { waiting, done, failed };

class AllGather {
 public:
  virtual ~AllGather() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Both pieces of memory belong to it until test() says otherwise. One at a time. False where it failed at once.
  virtual bool start(const void* mine, std::size_t bytes, void* all) = 0;
  virtual Turn test() = 0;
};

}  // namespace plait::plugin
