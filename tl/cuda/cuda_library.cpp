#include "tl/cuda/cuda_library.h"

#include <dlfcn.h>

namespace plait::tl {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_memory(void* library, Cuda& cuda) {
  return find(library, "cuPointerGetAttributes", cuda.pointer_attributes) &&
         find(library, "cuCtxGetCurrent", cuda.current_context) &&
         find(library, "cuCtxPushCurrent_v2", cuda.push_context) &&
         find(library, "cuCtxPopCurrent_v2", cuda.pop_context) &&
         find(library, "cuDevicePrimaryCtxRetain", cuda.primary_context) &&
         find(library, "cuDeviceGetPCIBusId", cuda.bus_name) && find(library, "cuMemHostRegister_v2", cuda.pin) &&
         find(library, "cuMemHostUnregister", cuda.unpin) && find(library, "cuGetErrorName", cuda.error_name);
}

bool find_streams(void* library, Cuda& cuda) {
  return find(library, "cuMemcpyAsync", cuda.copy) && find(library, "cuMemcpy2DAsync_v2", cuda.copy_rows) &&
         find(library, "cuStreamCreate", cuda.make_stream) && find(library, "cuStreamDestroy_v2", cuda.end_stream) &&
         find(library, "cuStreamSynchronize", cuda.synchronize) && find(library, "cuStreamWaitEvent", cuda.wait_for) &&
         find(library, "cuEventCreate", cuda.make_event) && find(library, "cuEventDestroy_v2", cuda.end_event) &&
         find(library, "cuEventRecord", cuda.record) && find(library, "cuEventQuery", cuda.query);
}

bool find_kernels(void* library, Cuda& cuda) {
  return find(library, "cuModuleLoadData", cuda.load_module) &&
         find(library, "cuModuleGetFunction", cuda.find_function) && find(library, "cuLaunchKernel", cuda.launch);
}

// Both or none.
void find_allocation(void* library, Cuda& cuda) {
  if (!find(library, "cuMemAlloc_v2", cuda.allocate) || !find(library, "cuMemFree_v2", cuda.release))
    cuda.allocate = nullptr;
}

// All of them or none.
void find_handles(void* library, Cuda& cuda) {
  if (!find(library, "cuIpcGetMemHandle", cuda.get_handle) ||
      !find(library, "cuIpcOpenMemHandle_v2", cuda.open_handle) ||
      !find(library, "cuIpcCloseMemHandle", cuda.close_handle))
    cuda.get_handle = nullptr;
}

// Likewise.
void find_mapping(void* library, Cuda& cuda) {
  if (!find(library, "cuMemRetainAllocationHandle", cuda.memory_of) ||
      !find(library, "cuMemRelease", cuda.let_memory_go) ||
      !find(library, "cuMemExportToShareableHandle", cuda.memory_to_file) ||
      !find(library, "cuMemImportFromShareableHandle", cuda.memory_from_file) ||
      !find(library, "cuMemAddressReserve", cuda.reserve_addresses) ||
      !find(library, "cuMemAddressFree", cuda.free_addresses) || !find(library, "cuMemMap", cuda.map_memory) ||
      !find(library, "cuMemUnmap", cuda.unmap_memory) || !find(library, "cuMemSetAccess", cuda.allow_access))
    cuda.memory_of = nullptr;
}

}  // namespace

std::optional<Cuda> Cuda::in(void* library) {
  Cuda cuda;
  if (!find_memory(library, cuda) || !find_streams(library, cuda) || !find_kernels(library, cuda)) return std::nullopt;
  find_allocation(library, cuda);
  find_handles(library, cuda);
  find_mapping(library, cuda);
  return cuda;
}

std::string Cuda::text_of(Outcome outcome) const {
  const char* name = nullptr;
  const bool known = error_name(outcome, &name) == success && name != nullptr;
  return known ? std::string(name) : "error " + std::to_string(outcome);
}

Status Cuda::failure(const std::string& what, Outcome outcome) const {
  return {Code::unavailable, "the CUDA driver could not " + what + ": " + text_of(outcome)};
}

}  // namespace plait::tl
