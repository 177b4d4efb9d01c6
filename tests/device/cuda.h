// A driver of CUDA's, opened at run time: the machine's, or the tests' fake one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plait::test {

// One device and its first context. Copies wait until they are done.
class Cuda {
 public:
  // False: there is none; `why` says so.
  bool open(const char* file, int device_of_rank, const char*& why);
  int devices() const { return devices_; }

  void* allocate(std::size_t bytes) const;
  void release(void* address) const;
  void* allocate_pinned(std::size_t bytes) const;
  void release_pinned(void* address) const;
  // Between memory of any kinds.
  void copy(void* to, const void* from, std::size_t bytes) const;
  // Given to a stream, and then waited for.
  void copy_later(void* to, const void* from, std::size_t bytes) const;
  void wait() const;

 private:
  int devices_ = 0;
  int (*allocate_)(unsigned long long*, std::size_t) = nullptr;
  int (*release_)(unsigned long long) = nullptr;
  int (*allocate_pinned_)(void**, std::size_t) = nullptr;
  int (*release_pinned_)(void*) = nullptr;
  int (*copy_)(unsigned long long, unsigned long long, std::size_t, void*) = nullptr;
  int (*synchronize_)(void*) = nullptr;
};

// Loads the driver that "--driver FILE" names among the arguments, or the machine's, and does nothing else with it.
void load_driver(int argc, char** argv);

}  // namespace plait::test
