// Where the packed bytes of one side of a call lie in memory of a device, and copies of parts of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "runtime/device/pinned_memory.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"
#include "tl/device_driver.h"

namespace plait::runtime {

// How an element of the data is laid out: in runs of bytes, or gapless.
struct DeviceElement {
  std::size_t bytes = 0;               // packed
  std::ptrdiff_t extent = 0;           // from one element to the next
  std::span<const ByteRun> runs = {};  // in the order in which they are packed; none: bytes one after the other,
                                       // element after element
};

// Elements of one kind, in parts that lie apart; packed, the parts follow each other. Keeps its memory from call to
// call.
class DeviceView {
 public:
  // `memory`: what the driver says of an address of the data, some of which may be the processor's. May throw
  // std::bad_alloc.
  void start(const DeviceDriver& driver, const tl::DeviceMemory& memory, const DeviceElement& element);
  // A null address may have displacements added all the same.
  void add(std::byte* address, std::size_t count);

  const DeviceDriver& driver() const { return *driver_; }
  const tl::DeviceMemory& memory() const { return memory_; }
  std::uint64_t bytes() const { return bytes_; }

  // Gives the stream what copies packed bytes [begin, end) from the device, or to it. `packed` is where packed byte 0
  // stands, or would.
  Status bring(tl::DeviceStream& stream, std::byte* packed, std::uint64_t begin, std::uint64_t end) const;
  Status take(tl::DeviceStream& stream, const std::byte* packed, std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Part {
    std::byte* address = nullptr;
    std::uint64_t packed = 0, bytes = 0;
  };
  enum class Way : std::uint8_t { whole, rows, kernel, runs };

  Way way_of(const Part& part) const;
  void find_rows();
  template <class Copies>
  Status move(const Copies& copies, std::uint64_t begin, std::uint64_t end) const;

  const DeviceDriver* driver_ = nullptr;
  tl::DeviceMemory memory_;
  std::uint64_t element_bytes_ = 1;
  std::ptrdiff_t extent_ = 1;
  std::vector<tl::DeviceRun> runs_;        // empty: gapless
  std::int64_t lowest_ = 0, highest_ = 0;  // of an element's bytes
  std::uint64_t row_bytes_ = 0;            // of runs of one length and distance; 0: they are not
  std::int64_t row_distance_ = 0;
  bool rows_end_ = false;  // with each element: the next one's do not go on at that distance
  bool kernel_ = false;
  PinnedMemory kernel_runs_;
  std::vector<Part> parts_;
  std::uint64_t bytes_ = 0;
};

}  // namespace plait::runtime
