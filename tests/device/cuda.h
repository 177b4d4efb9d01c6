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
  // Memory over the border of two pieces that are mapped one behind the other, as allocators have it that grow in
  // place; nullptr where the driver has none such.
  void* allocate_in_pieces(std::size_t bytes) const;
  void release_pieces(void* address, std::size_t bytes) const;
  void* allocate_pinned(std::size_t bytes) const;
  void release_pinned(void* address) const;
  // Between memory of any kinds.
  void copy(void* to, const void* from, std::size_t bytes) const;
  // Given to a stream, and then waited for.
  void copy_later(void* to, const void* from, std::size_t bytes) const;
  void wait() const;

 private:
  // CUmemAllocationProp and CUmemAccessDesc.
  struct MemoryKind {
    int pinned = 1, file = 1, place_kind = 1, device = 0;
    void* other_system = nullptr;
    std::uint64_t flags = 0;
  };
  struct Access {
    int place_kind = 1, device = 0, rights = 3;
  };

  void find_pieces(void* library);
  std::size_t piece_bytes() const;

  int devices_ = 0, device_ = 0;
  int (*allocate_)(unsigned long long*, std::size_t) = nullptr;
  int (*release_)(unsigned long long) = nullptr;
  int (*allocate_pinned_)(void**, std::size_t) = nullptr;
  int (*release_pinned_)(void*) = nullptr;
  int (*copy_)(unsigned long long, unsigned long long, std::size_t, void*) = nullptr;
  int (*synchronize_)(void*) = nullptr;
  int (*piece_unit_)(std::size_t*, const MemoryKind*, int) = nullptr;  // with all below, or nullptr
  int (*make_piece_)(unsigned long long*, std::size_t, const MemoryKind*, unsigned long long) = nullptr;
  int (*let_piece_go_)(unsigned long long) = nullptr;
  int (*reserve_)(unsigned long long*, std::size_t, std::size_t, unsigned long long, unsigned long long) = nullptr;
  int (*give_back_)(unsigned long long, std::size_t) = nullptr;
  int (*map_)(unsigned long long, std::size_t, std::size_t, unsigned long long, unsigned long long) = nullptr;
  int (*unmap_)(unsigned long long, std::size_t) = nullptr;
  int (*allow_)(unsigned long long, std::size_t, const Access*, std::size_t) = nullptr;
};

// Loads the driver that "--driver FILE" names among the arguments, or the machine's, and does nothing else with it.
void load_driver(int argc, char** argv);

}  // namespace plait::test
