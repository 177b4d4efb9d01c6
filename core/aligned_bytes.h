// Memory to work in that starts at a cache line.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace plait {

inline constexpr std::size_t line_bytes = 64;

// The next multiple of a cache line.
constexpr std::size_t padded_to_line(std::size_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

struct FreeLines {
  void operator()(std::byte* bytes) const { ::operator delete (bytes, std::align_val_t{line_bytes}); }
};
using Lines = std::unique_ptr<std::byte[], FreeLines>;

// Contents undefined. Throws std::bad_alloc.
inline Lines make_lines(std::size_t bytes) {
  return Lines(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{line_bytes})));
}

// Bytes kept from use to use, which become more and never fewer.
class AlignedBytes {
 public:
  // At least so many; when they become more, what they held is lost. Throws std::bad_alloc.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_) {
      lines_ = nullptr;  // first, so that the old and the new are never held together
      bytes_ = 0;
      lines_ = make_lines(bytes);
      bytes_ = bytes;
    }
    return lines_.get();
  }
  std::byte* data() const { return lines_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  Lines lines_;
  std::size_t bytes_ = 0;
};

}  // namespace plait
