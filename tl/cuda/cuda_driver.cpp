#include "tl/cuda/cuda_driver.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <string>

namespace plait::tl {
namespace {

// As in cuda.h, which is seldom installed where Plait is built.
using Outcome = int;
using Address = unsigned long long;
using Context = void*;
using Stream = void*;
constexpr Outcome success = 0;
constexpr int attribute_context = 1, attribute_memory_type = 2, attribute_is_managed = 8, attribute_device = 9;
constexpr unsigned device_memory = 2;
// The calling thread's default stream: in order with the kernels that a program starts on default streams.
Stream own_stream() { return reinterpret_cast<Stream>(std::uintptr_t{2}); }

struct Functions {
  Outcome (*pointer_attributes)(unsigned count, int* attributes, void** values, Address address) = nullptr;
  Outcome (*current_context)(Context*) = nullptr;
  Outcome (*push_context)(Context) = nullptr;
  Outcome (*pop_context)(Context*) = nullptr;
  Outcome (*primary_context)(Context*, int device) = nullptr;
  Outcome (*copy)(Address to, Address from, std::size_t bytes, Stream stream) = nullptr;
  Outcome (*synchronize)(Stream) = nullptr;
  Outcome (*error_name)(Outcome, const char**) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Address as_address(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

class CudaDriver final : public DeviceDriver {
 public:
  explicit CudaDriver(const Functions& functions) : functions_(functions) {}

  const char* name() const override { return "CUDA"; }

  // Memory that the driver does not know has no type. A driver that nobody has initialised has given out no memory.
  bool owns(const void* address) const override {
    unsigned type = 0, managed = 0;
    std::array<int, 2> attributes{attribute_memory_type, attribute_is_managed};
    std::array<void*, 2> values{&type, &managed};
    return functions_.pointer_attributes(attributes.size(), attributes.data(), values.data(), as_address(address)) ==
               success &&
           type == device_memory && managed == 0;
  }

  // The last step waits for the end also where the host's side is not pinned.
  Status copy(void* to, const void* from, std::size_t bytes) const override {
    if (bytes == 0) return {};
    Context current = nullptr, pushed = nullptr;
    Outcome result = functions_.current_context(&current);
    if (result == success && current == nullptr) {
      pushed = context_of(owns(to) ? to : from);
      result = pushed != nullptr ? functions_.push_context(pushed) : result;
    }
    if (result == success) result = functions_.copy(as_address(to), as_address(from), bytes, own_stream());
    if (result == success) result = functions_.synchronize(own_stream());
    if (pushed != nullptr) functions_.pop_context(&pushed);
    if (result == success) return {};
    return {Code::unavailable,
            "the CUDA driver could not copy " + std::to_string(bytes) + " bytes: " + error_text(result)};
  }

 private:
  // For a thread that has none, such as a helper of ours.
  Context context_of(const void* address) const {
    Context context = nullptr;
    int device = 0;
    std::array<int, 2> attributes{attribute_context, attribute_device};
    std::array<void*, 2> values{&context, &device};
    const Outcome known =
        functions_.pointer_attributes(attributes.size(), attributes.data(), values.data(), as_address(address));
    if (known == success && context == nullptr) functions_.primary_context(&context, device);
    return context;
  }

  std::string error_text(Outcome result) const {
    const char* name = nullptr;
    const std::string number = std::to_string(result);
    return functions_.error_name(result, &name) == success && name != nullptr ? std::string(name) : "error " + number;
  }

  Functions functions_;
};

}  // namespace

std::unique_ptr<DeviceDriver> open_cuda_driver(void* library) {
  Functions functions;
  const bool complete = find(library, "cuPointerGetAttributes", functions.pointer_attributes) &&
                        find(library, "cuCtxGetCurrent", functions.current_context) &&
                        find(library, "cuCtxPushCurrent_v2", functions.push_context) &&
                        find(library, "cuCtxPopCurrent_v2", functions.pop_context) &&
                        find(library, "cuDevicePrimaryCtxRetain", functions.primary_context) &&
                        find(library, "cuMemcpyAsync", functions.copy) &&
                        find(library, "cuStreamSynchronize", functions.synchronize) &&
                        find(library, "cuGetErrorName", functions.error_name);
  return complete ? std::make_unique<CudaDriver>(functions) : nullptr;
}

}  // namespace plait::tl
