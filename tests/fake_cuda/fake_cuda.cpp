#include "tests/fake_cuda/fake_cuda.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/fake_cuda/state.h"

namespace fake {
namespace {

double number(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atof(text) : otherwise;
}

void take_failures(std::string_view list, std::map<std::string, Failure, std::less<>>& failures) {
  while (!list.empty()) {
    const std::string one(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    const std::size_t colon = one.find(':');
    if (colon == std::string::npos) continue;
    Failure failure;
    std::sscanf(one.c_str() + colon, ":%ld:%d", &failure.left, &failure.result);
    failures[one.substr(0, colon)] = failure;
  }
}

// One device with one context; a thread has a stack of contexts.
CUcontext the_context() { return reinterpret_cast<CUcontext>(std::uintptr_t{0x1000}); }
thread_local std::array<CUcontext, 8> contexts{};
thread_local std::size_t depth = 0;

CUcontext current() { return depth > 0 ? contexts[depth - 1] : nullptr; }

}  // namespace

Driver::Driver() {
  constexpr double ns_a_second = 1e9, ns_a_microsecond = 1e3, endless = 1e18;
  settings.bytes_per_ns = number("FAKE_CUDA_RATE", 0) / ns_a_second;
  settings.peer_bytes_per_ns = number("FAKE_CUDA_PEER_RATE", 0) / ns_a_second;
  settings.latency_ns = static_cast<std::int64_t>(number("FAKE_CUDA_LATENCY", 0) * ns_a_microsecond);
  settings.most_pinned = static_cast<std::size_t>(number("FAKE_CUDA_PINNED", endless));
  settings.most_device = static_cast<std::size_t>(number("FAKE_CUDA_DEVICE", endless));
  settings.kernels = number("FAKE_CUDA_KERNELS", 1) != 0;
  if (const char* list = std::getenv("FAKE_CUDA_FAIL"); list != nullptr) take_failures(list, failures);
}

Driver& driver() {
  static auto* made = new Driver;
  return *made;
}

CUresult count(const char* function) {
  const auto found = driver().failures.find(std::string_view(function));
  if (found == driver().failures.end() || found->second.left < 0) return success;
  if (found->second.left == 0) return found->second.result;
  --found->second.left;
  return success;
}

CUresult usable(const char* function) {
  if (!driver().initialised) return not_initialized;
  if (current() == nullptr) return invalid_context;
  return driver().broken != success ? driver().broken : count(function);
}

}  // namespace fake

using namespace fake;

extern "C" {

CUresult cuInit(unsigned) {
  const std::scoped_lock lock(driver().guard);
  driver().initialised = true;
  return success;
}

CUresult cuDriverGetVersion(int* version) {
  *version = 0;
  return success;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return driver().initialised ? success : not_initialized;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? success : invalid_value;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(length), "fake");
  return success;
}

CUresult cuDeviceGetPCIBusId(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(length), "FACE:00:00.0");
  return success;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!driver().initialised) return not_initialized;
  *context = the_context();
  return device == 0 ? success : invalid_value;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  depth = context != nullptr ? 1 : 0;
  contexts[0] = context;
  return success;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (!driver().initialised) return not_initialized;
  *context = current();
  return success;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (context != the_context() || depth == contexts.size()) return invalid_context;
  contexts[depth++] = context;
  return success;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (depth == 0) return invalid_context;
  *context = contexts[--depth];
  return success;
}

CUresult cuGetErrorName(CUresult result, const char** name) {
  switch (result) {
    case invalid_value:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case out_of_memory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case invalid_image:
      *name = "CUDA_ERROR_INVALID_IMAGE";
      break;
    case invalid_context:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case illegal_address:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    default:
      *name = nullptr;
      return invalid_value;
  }
  return success;
}

long fake_cuda_questions() { return driver().questions; }
long fake_cuda_copies() { return driver().copies; }
long fake_cuda_kernels() { return driver().kernels; }
long fake_cuda_mapped() { return driver().mapped; }
long fake_cuda_pending() {
  const std::scoped_lock lock(driver().guard);
  long pending = 0;
  for (const CUstream stream : driver().streams) pending += static_cast<long>(stream->given - stream->done);
  return pending;
}
void fake_cuda_fail(const char* function, long calls, CUresult result) {
  const std::scoped_lock lock(driver().guard);
  driver().failures[function] = {calls, result};
  if (calls < 0) driver().broken = success;
}
void fake_cuda_fail_after(long copies) { fake_cuda_fail("cuMemcpyAsync", copies, illegal_address); }

}  // extern "C"
