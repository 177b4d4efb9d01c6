// All ranks of a job while it starts, before any of them knows of the others' settings.
#pragma once

#include <cstddef>
#include <functional>

#include "runtime/layer.h"

namespace plait::runtime {

class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Both are collective. `bytes` of each rank, in the order of ranks; false where it failed.
  virtual bool gather_all(const void* mine, std::size_t bytes, void* all) = 0;
  // Whether all ranks say yes, and could. Where some may not come, `waiting` is called again and again
  // meanwhile; else it is empty.
  virtual bool all_say_yes(bool mine, const std::function<void()>& waiting) = 0;
};

}  // namespace plait::runtime
