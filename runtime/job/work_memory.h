// Memory for the time of one call: staged data and the plan's scratch. One a communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace plait::runtime {

class WorkMemory {
 public:
  static constexpr std::size_t alignment = 64;  // a cache line

  static constexpr std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

  std::size_t bytes() const { return capacity_; }

  // At least `bytes`, contents undefined, valid until the next reserve(). Throws std::bad_alloc.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > capacity_)
      grow(bytes);
    else if (capacity_ > generous)
      shrink_when_unused(bytes);
    return data_.get();
  }

 private:
  static constexpr std::size_t generous = std::size_t{64} << 20;  // more than this is given back ...
  static constexpr int patience = 16;                             // ... after so many calls that did not need it

  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{alignment}); }
  };

  void grow(std::size_t bytes) {
    const std::size_t wanted = capacity_ > generous ? bytes : std::max(bytes, 2 * capacity_);
    allocate(wanted);
    small_calls_ = 0;
  }
  void shrink_when_unused(std::size_t bytes) {
    small_calls_ = bytes > generous ? 0 : small_calls_ + 1;
    if (small_calls_ < patience) return;
    allocate(std::max<std::size_t>(bytes, alignment));
    small_calls_ = 0;
  }
  void allocate(std::size_t bytes) {
    data_.reset();  // first, so that the old and the new are never held together
    capacity_ = 0;
    data_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment})));
    capacity_ = bytes;
  }

  std::unique_ptr<std::byte, Free> data_;
  std::size_t capacity_ = 0;
  int small_calls_ = 0;
};

}  // namespace plait::runtime
