// The driver of a vendor's devices, as far as their memory is concerned: what kind an address is of, copies that go on
// while the processor does something else, memory that such copies reach at full speed, kernels that gather scattered
// data, and memory of other processes, which kernels combine and move. Nothing above knows whose driver it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/element.h"
#include "core/status.h"
#include "tl/device_tiles.h"

namespace plait::tl {

enum class MemoryKind : std::uint8_t {
  host,     // the processor's, and unknown to the driver
  pinned,   // the processor's; the driver keeps it in its place
  device,   // the processor must not touch it
  managed,  // of both: the driver moves it
};

// What the driver knows of an address.
struct DeviceMemory {
  MemoryKind kind = MemoryKind::host;
  std::uint64_t allocation = 0;  // a number that no other allocation of the process ever has; 0: it has none
  std::uintptr_t begin = 0;      // of the allocation
  std::size_t bytes = 0;         // likewise; 0: not known
  int device = -1;
  void* context = nullptr;  // the driver's

  bool contains(const void* address, std::size_t length) const {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - begin;
    return offset < bytes && length <= bytes - offset;
  }
};

// A run of bytes of an element: where it lies from the element's address on, and where in the packed element.
struct DeviceRun {
  std::int64_t place = 0;
  std::uint64_t packed = 0;
  std::uint64_t bytes = 0;
};

// Elements whose bytes lie in runs, and those of them that are meant: packed bytes [begin, end) of all elements
// together.
struct DeviceRuns {
  std::byte* elements = nullptr;
  std::span<const DeviceRun> runs =
      {};                          // in the order of the packed bytes; in pinned memory, where a kernel reads them
  std::uint64_t packed_bytes = 0;  // of an element
  std::int64_t extent = 0;         // from one element to the next
  std::uint64_t begin = 0, end = 0;
};

// An allocation, as another process of the machine can map it: bytes that mean something to the driver alone.
using DeviceHandle = std::array<std::byte, 64>;

// A piece of another process's memory that has been given as a file.
struct DevicePiece {
  int file = -1;  // whoever made it closes it
  std::uint64_t bytes = 0;
};

// Ranks whose memory one kernel reads and writes at most.
inline constexpr std::size_t most_device_parties = 32;

// results[j] = ((sources[0] op sources[1]) op sources[2]) ..., element by element and for every j. A result may be one
// of the sources exactly; otherwise results overlap neither sources nor each other. All are memory that the device
// reaches: its own, other devices', other processes'.
struct DeviceReduction {
  Op op = Op::count_;
  Element element = Element::count_;
  std::uint64_t elements = 0;
  std::span<const std::byte* const> sources = {};  // at most most_device_parties
  std::span<std::byte* const> results = {};        // likewise
};

// Bytes from one place to another; they do not overlap.
struct DeviceMove {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
};

// A place in a stream's order.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Whether everything before it is done. Does not block.
  virtual Result<bool> passed() = 0;
};

// Work that a device does in order, while the processor does something else. Used by one thread at a time, any thread.
// What is named stays in place until an event behind it has passed.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // What follows comes after the event.
  virtual Status follow(DeviceEvent& event) = 0;
  // Between memory of any kinds.
  virtual Status copy(void* to, const void* from, std::size_t bytes) = 0;
  // To the device, where that may be quicker than copy(): at most `longest_store` bytes, and at most `most_stores` of
  // them that no event has passed behind.
  static constexpr std::size_t longest_store = std::size_t{24} << 10, most_stores = 32;
  virtual Status store(void* to, const void* from, std::size_t bytes) { return copy(to, from, bytes); }
  // `rows` of `bytes` each, `to_pitch` and `from_pitch` apart.
  struct Rows {
    std::byte* to = nullptr;
    std::size_t to_pitch = 0;
    const std::byte* from = nullptr;
    std::size_t from_pitch = 0;
    std::size_t bytes = 0, rows = 0;
  };
  virtual Status copy_rows(const Rows& rows) = 0;
  // By a kernel, between elements on the device and packed bytes in pinned memory, where those of `runs.begin` come
  // first. Precondition: the driver has kernels.
  virtual Status pack(std::byte* packed, const DeviceRuns& runs) = 0;
  virtual Status unpack(const DeviceRuns& runs, const std::byte* packed) = 0;
  // By a kernel. Precondition: the driver reduces this.
  virtual Status reduce(const DeviceReduction&) {
    return {Code::unsupported, "device memory: no kernels that combine"};
  }
  // At most most_device_parties of them, in any order, at the same time where the driver can.
  virtual Status move(std::span<const DeviceMove> moves) {
    Status status;
    for (const DeviceMove& one : moves)
      if (status.ok() && one.to != one.from) status = copy(one.to, one.from, one.bytes);
    return status;
  }
  // What a fused operator computes, tile by tile, and whether its lookups are right. Precondition: the driver fuses.
  virtual Status pool(const DevicePooling&) { return no_tiles(); }
  virtual Status multiply(const DeviceProducts&) { return no_tiles(); }
  virtual Status multiply(const DeviceMatrices&) { return no_tiles(); }
  virtual Status multiply(const DeviceGather&) { return no_tiles(); }
  virtual Status check(const DeviceLookups&) { return no_tiles(); }
  virtual Status record(DeviceEvent& event) = 0;
  // Returns once all that it was given is done, or will never be.
  virtual void finish() noexcept = 0;

 private:
  static Status no_tiles() { return {Code::unsupported, "device memory: no kernels of fused operators"}; }
};

// One vendor's. Thread-safe; never destroyed once it was found.
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;
  virtual const char* name() const = 0;

  // What an address is at this moment: it may come to mean other memory.
  virtual DeviceMemory memory_at(const void* address) const = 0;
  // Whether the processor must not touch it.
  bool owns(const void* address) const { return memory_at(address).kind == MemoryKind::device; }

  // Of the device that the memory is on.
  virtual Result<std::unique_ptr<DeviceStream>> make_stream(const DeviceMemory& memory) const = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> make_event(const DeviceMemory& memory) const = 0;
  // The event comes after all that the program has given its default streams, as this thread sees them, so far.
  virtual Status record_program(DeviceEvent& event) const = 0;
  // Keeps memory of the processor's in its place, so that copies from and to it are fast and do not block. Whole pages.
  virtual Status pin(void* address, std::size_t bytes) const = 0;
  virtual void unpin(void* address) const = 0;
  // Of the processor's memory, the part that the device reaches fastest; -1: not known, or there is one.
  virtual int near_node(const DeviceMemory& memory) const = 0;
  // Whether kernels can be used on the device that the memory is on.
  virtual bool has_kernels(const DeviceMemory& memory) const = 0;

  // Whether a stream of that device can reduce(): it has kernels, and they know the operator on such elements.
  virtual bool reduces(const DeviceMemory& memory, Op op, Element element) const {
    static_cast<void>(memory), static_cast<void>(op), static_cast<void>(element);
    return false;
  }

  // Whether a stream of that device computes what fused operators need, and the driver gives memory for it.
  virtual bool fuses(const DeviceMemory&) const { return false; }
  // Memory of that device, at a multiple of 256 bytes, until release().
  virtual Result<std::byte*> allocate(const DeviceMemory& near, std::size_t bytes) const {
    static_cast<void>(near), static_cast<void>(bytes);
    return {Code::unsupported, "device memory: the driver gives none"};
  }
  virtual void release(std::byte* memory, const DeviceMemory& near) const {
    static_cast<void>(memory), static_cast<void>(near);
  }

  // ---- Memory of other processes of the machine ----

  // Tells the device from the machine's others, the same number in all processes; 0: not known.
  virtual std::uint64_t device_number(const DeviceMemory&) const { return 0; }
  // Of the whole allocation that the memory is of. Fails where the driver hands on none such (unsupported, or what the
  // driver says).
  virtual Result<DeviceHandle> share(const DeviceMemory&) const {
    return {Code::unsupported, "device memory: it cannot be shared"};
  }
  // Maps another process's allocation where the device of `near` reaches it; the allocation's begin. Until unmap(); the
  // process that owns it may free it before, and then it must not be touched.
  virtual Result<std::byte*> map(const DeviceHandle&, const DeviceMemory& near) const {
    static_cast<void>(near);
    return {Code::unsupported, "device memory: it cannot be mapped"};
  }
  virtual void unmap(std::byte* mapped, const DeviceMemory& near) const {
    static_cast<void>(mapped), static_cast<void>(near);
  }

  // Of memory that is mapped apart from its making (cuMemMap; `PYTORCH_CUDA_ALLOC_CONF=expandable_segments`): what is
  // mapped there, as a file descriptor that the caller closes. Fails where the memory is none such, or was not made to
  // be handed on.
  virtual Result<int> share_as_file(const DeviceMemory&) const {
    return {Code::unsupported, "device memory: it cannot be shared as a file"};
  }
  // Maps such pieces of another process's, one behind the other, where the device of `near` reaches them, until
  // unmap_pieces(). They stay there whatever their owner does with his.
  virtual Result<std::byte*> map_pieces(std::span<const DevicePiece>, const DeviceMemory& near) const {
    static_cast<void>(near);
    return {Code::unsupported, "device memory: no files can be mapped"};
  }
  // The files may be closed.
  virtual void unmap_pieces(std::byte* mapped, std::span<const DevicePiece>, const DeviceMemory& near) const {
    static_cast<void>(mapped), static_cast<void>(near);
  }

  // Between memory of any kinds, from any thread, after what the program has given its default streams; complete when
  // it returns.
  virtual Status copy(void* to, const void* from, std::size_t bytes) const = 0;
};

}  // namespace plait::tl
