// Lets memory be short in one thread of this program.
#pragma once

namespace plait::runtime {

// While it is there, operator new fails in its thread after so many times.
class ScarceMemory {
 public:
  explicit ScarceMemory(int left);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace plait::runtime
