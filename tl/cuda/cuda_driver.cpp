#include "tl/cuda/cuda_driver.h"

#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tl/cuda/cuda_kernels.h"
#include "tl/cuda/cuda_library.h"
#include "tl/cuda/cuda_pieces.h"
#include "tl/cuda/cuda_stream.h"

namespace plait::tl {
namespace {

// CU_POINTER_ATTRIBUTE_...
constexpr int attribute_context = 1, attribute_memory_type = 2, attribute_buffer_id = 7, attribute_is_managed = 8,
              attribute_device = 9, attribute_range_begin = 11, attribute_range_bytes = 12;
constexpr unsigned type_none = 0, type_device = 2;

// What this thread was told of allocations, by their numbers, which are never given again: right also when an address
// is freed and used again, as the driver is asked for the number each time.
class KnownAllocations {
 public:
  const DeviceMemory* find(std::uint64_t allocation) const {
    const DeviceMemory& memory = known_[allocation % known_.size()];
    return allocation != 0 && memory.allocation == allocation ? &memory : nullptr;
  }
  void keep(const DeviceMemory& memory) {
    if (memory.allocation != 0) known_[memory.allocation % known_.size()] = memory;
  }

 private:
  std::array<DeviceMemory, 4>
      known_{};  // few: of what a library may keep a thread there is little when it is loaded late
};
thread_local constinit KnownAllocations known_allocations __attribute__((tls_model("initial-exec")));

MemoryKind kind_of(unsigned type, unsigned managed) {
  if (type == type_none) return MemoryKind::host;
  if (managed != 0) return MemoryKind::managed;
  return type == type_device ? MemoryKind::device : MemoryKind::pinned;
}

class CudaDriver final : public DeviceDriver {
 public:
  explicit CudaDriver(const Cuda& cuda) : cuda_(cuda) {
    for (std::atomic<int>& node : nodes_) node.store(not_asked, std::memory_order_relaxed);
  }

  const char* name() const override { return "CUDA"; }

  // Memory that the driver does not know has no type. A driver that nobody has initialised has given out no memory.
  DeviceMemory memory_at(const void* address) const override {
    unsigned type = type_none, managed = 0;
    unsigned long long allocation = 0;
    std::array<int, 3> attributes{attribute_memory_type, attribute_is_managed, attribute_buffer_id};
    std::array<void*, 3> values{&type, &managed, &allocation};
    if (!ask(attributes, values, address) || type == type_none) return {};
    if (const DeviceMemory* known = known_allocations.find(allocation); known != nullptr) return *known;
    DeviceMemory memory{.kind = kind_of(type, managed), .allocation = allocation};
    describe(memory, address);
    known_allocations.keep(memory);
    return memory;
  }

  Result<std::unique_ptr<DeviceStream>> make_stream(const DeviceMemory& memory) const override {
    return make_cuda_stream(cuda_, memory.context);
  }

  Result<std::unique_ptr<DeviceEvent>> make_event(const DeviceMemory& memory) const override {
    return make_cuda_event(cuda_, memory.context);
  }
  Status record_program(DeviceEvent& event) const override { return record_in_program_stream(event); }

  Status pin(void* address, std::size_t bytes) const override {
    constexpr unsigned for_all_contexts = 1 | 2;  // CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP: kernels reach it, too
    const Cuda::Outcome outcome =
        CudaContext(cuda_, any_context()).then([&] { return cuda_.pin(address, bytes, for_all_contexts); }).outcome();
    return outcome == Cuda::success ? Status() : cuda_.failure("pin " + std::to_string(bytes) + " bytes", outcome);
  }
  void unpin(void* address) const override {
    CudaContext(cuda_, any_context()).then([&] { return cuda_.unpin(address); });
  }

  int near_node(const DeviceMemory& memory) const override {
    if (memory.device < 0 || static_cast<std::size_t>(memory.device) >= nodes_.size()) return -1;
    std::atomic<int>& known = nodes_[static_cast<std::size_t>(memory.device)];
    int node = known.load(std::memory_order_relaxed);
    if (node != not_asked) return node;
    known.store(node = ask_for_node(memory.device), std::memory_order_relaxed);
    return node;
  }

  bool has_kernels(const DeviceMemory& memory) const override {
    bool usable = false;
    CudaContext(cuda_, memory.context).then([&] {
      usable = kernels_in(cuda_, memory.context).usable();
      return Cuda::success;
    });
    return usable;
  }

  bool reduces(const DeviceMemory& memory, Op op, Element element) const override {
    const CudaReduced reduced = cuda_reduced(op, element);
    bool usable = false;
    if (reduced.kernel == CudaReduced::none) return false;
    CudaContext(cuda_, memory.context).then([&] {
      usable = kernels_in(cuda_, memory.context).reduce[reduced.kernel] != nullptr;
      return Cuda::success;
    });
    return usable;
  }

  bool fuses(const DeviceMemory& memory) const override {
    bool usable = false;
    if (cuda_.allocate == nullptr) return false;
    CudaContext(cuda_, memory.context).then([&] {
      usable = kernels_in(cuda_, memory.context).fused.usable();
      return Cuda::success;
    });
    return usable;
  }

  Result<std::byte*> allocate(const DeviceMemory& near, std::size_t bytes) const override {
    if (cuda_.allocate == nullptr) return DeviceDriver::allocate(near, bytes);
    Cuda::Address made = 0;
    const Cuda::Outcome outcome =
        CudaContext(cuda_, near.context).then([&] { return cuda_.allocate(&made, bytes); }).outcome();
    if (outcome != Cuda::success) return cuda_.failure("allocate " + std::to_string(bytes) + " bytes", outcome);
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(made));
  }
  void release(std::byte* memory, const DeviceMemory& near) const override {
    CudaContext(cuda_, near.context).then([&] { return cuda_.release(as_address(memory)); });
  }

  // By its place on the bus: processes number the devices that they may see.
  std::uint64_t device_number(const DeviceMemory& memory) const override {
    std::array<char, 32> name{};
    if (memory.device < 0 ||
        cuda_.bus_name(name.data(), static_cast<int>(name.size()) - 1, memory.device) != Cuda::success)
      return 0;
    return std::hash<std::string_view>()(name.data()) | 1;
  }

  Result<DeviceHandle> share(const DeviceMemory& memory) const override {
    static_assert(sizeof(Cuda::IpcHandle) == sizeof(DeviceHandle));
    if (cuda_.get_handle == nullptr || memory.bytes == 0)
      return {Code::unsupported, "the CUDA driver hands on no memory"};
    Cuda::IpcHandle handle{};
    const Cuda::Outcome outcome =
        CudaContext(cuda_, memory.context).then([&] { return cuda_.get_handle(&handle, memory.begin); }).outcome();
    if (outcome != Cuda::success) return cuda_.failure("hand on an allocation", outcome);
    return std::bit_cast<DeviceHandle>(handle);
  }

  Result<std::byte*> map(const DeviceHandle& handle, const DeviceMemory& near) const override {
    constexpr unsigned peer_access_when_needed = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    if (cuda_.get_handle == nullptr) return {Code::unsupported, "the CUDA driver maps no memory of others"};
    Cuda::Address mapped = 0;
    const auto given = std::bit_cast<Cuda::IpcHandle>(handle);
    const Cuda::Outcome outcome = CudaContext(cuda_, near.context)
                                      .then([&] { return cuda_.open_handle(&mapped, given, peer_access_when_needed); })
                                      .outcome();
    if (outcome != Cuda::success) return cuda_.failure("map another process's allocation", outcome);
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(mapped));
  }
  void unmap(std::byte* mapped, const DeviceMemory& near) const override {
    CudaContext(cuda_, near.context).then([&] { return cuda_.close_handle(as_address(mapped)); });
  }

  Result<int> share_as_file(const DeviceMemory& memory) const override { return share_cuda_memory(cuda_, memory); }
  Result<std::byte*> map_pieces(std::span<const DevicePiece> pieces, const DeviceMemory& near) const override {
    return map_cuda_pieces(cuda_, pieces, near);
  }
  void unmap_pieces(std::byte* mapped, std::span<const DevicePiece> pieces, const DeviceMemory& near) const override {
    unmap_cuda_pieces(cuda_, mapped, pieces, near);
  }

  // The last step waits for the end also where the host's side is not pinned.
  Status copy(void* to, const void* from, std::size_t bytes) const override {
    if (bytes == 0) return {};
    const DeviceMemory target = memory_at(to);
    const DeviceMemory memory = target.kind != MemoryKind::host ? target : memory_at(from);
    CudaContext context(cuda_, context_for(memory));
    context.then([&] { return cuda_.copy(as_address(to), as_address(from), bytes, program_stream()); }).then([&] {
      return cuda_.synchronize(program_stream());
    });
    if (context.outcome() == Cuda::success) return {};
    return cuda_.failure("copy " + std::to_string(bytes) + " bytes", context.outcome());
  }

 private:
  template <std::size_t count>
  bool ask(std::array<int, count>& attributes, std::array<void*, count>& values, const void* address) const {
    return cuda_.pointer_attributes(count, attributes.data(), values.data(), as_address(address)) == Cuda::success;
  }

  // As the system says of the device's slot.
  int ask_for_node(int device) const {
    std::array<char, 32> name{};
    if (cuda_.bus_name(name.data(), static_cast<int>(name.size()) - 1, device) != Cuda::success) return -1;
    for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    std::FILE* file = std::fopen((std::string("/sys/bus/pci/devices/") + name.data() + "/numa_node").c_str(), "re");
    if (file == nullptr) return -1;
    int node = -1;
    if (std::fscanf(file, "%d", &node) != 1) node = -1;
    std::fclose(file);
    return node;
  }

  // Where, and of which device and context: that of memory which has none, as of a pool, is the device's own.
  void describe(DeviceMemory& memory, const void* address) const {
    std::array<int, 2> of_owner{attribute_context, attribute_device};
    std::array<void*, 2> owner{&memory.context, &memory.device};
    static_cast<void>(ask(of_owner, owner, address));
    if (memory.context == nullptr && memory.device >= 0) cuda_.primary_context(&memory.context, memory.device);
    last_context_.store(memory.context, std::memory_order_relaxed);
    unsigned long long begin = 0;
    std::array<int, 2> of_range{attribute_range_begin, attribute_range_bytes};
    std::array<void*, 2> range{&begin, &memory.bytes};
    if (ask(of_range, range, address))  // older drivers do not know
      memory.begin = static_cast<std::uintptr_t>(begin);
    else
      memory.bytes = 0;
  }

  // The thread's own goes first: the program's default streams are in its order.
  Cuda::Context context_for(const DeviceMemory& memory) const {
    Cuda::Context current = nullptr;
    return cuda_.current_context(&current) == Cuda::success && current != nullptr ? current : memory.context;
  }
  // For what is the same in all: that of the memory that was asked about last, where the thread has none.
  Cuda::Context any_context() const {
    Cuda::Context current = nullptr;
    const bool has_one = cuda_.current_context(&current) == Cuda::success && current != nullptr;
    return has_one ? current : last_context_.load(std::memory_order_relaxed);
  }

  static constexpr int not_asked = -2;
  static constexpr std::size_t most_devices = 64;

  Cuda cuda_;
  mutable std::array<std::atomic<int>, most_devices> nodes_;
  mutable std::atomic<Cuda::Context> last_context_{nullptr};
};

}  // namespace

std::unique_ptr<DeviceDriver> open_cuda_driver(void* library) {
  const std::optional<Cuda> cuda = Cuda::in(library);
  return cuda ? std::make_unique<CudaDriver>(*cuda) : nullptr;
}

}  // namespace plait::tl
