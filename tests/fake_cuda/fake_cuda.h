// A libcuda.so.1 without a GPU. What it calls device memory has an address that the processor may not touch: whoever
// does gets a SIGSEGV. The data lie in a file in memory that is mapped a second time, where the driver's copies and its
// kernels, functions of the host, reach them.
//
// What is given to a stream is done late: when somebody asks for an event behind it, and then only the second or third
// time, or, where the device has a rate, once so much time has passed as its copy engines would have taken. Each
// direction has an engine of its own. So data are seldom where they are to be before they were waited for.
//
// It has the functions of CUDA's driver that Plait and the tests call, under their own names and with CUDA's types, and
// these for tests. Settings, read at the first use:
//   FAKE_CUDA_RATE      bytes a second of each copy engine; none: copies take no time of their own
//   FAKE_CUDA_PEER_RATE bytes a second of copies from device to device; none: they take no time of their own
//   FAKE_CUDA_LATENCY   microseconds that each copy takes besides
//   FAKE_CUDA_PINNED    bytes that may be pinned at a time
//   FAKE_CUDA_DEVICE    bytes of device memory
//   FAKE_CUDA_KERNELS   0: it refuses all images of kernels
//   FAKE_CUDA_PATIENCE  how many times as long as on a device a kernel may wait; none: as long
//   FAKE_CUDA_FAIL      FUNCTION:COUNT[:RESULT], as fake_cuda_fail(); several with commas between
#pragma once

#include <cstddef>

extern "C" {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
struct CUipcMemHandle {
  char reserved[64];
};

// CUDA_MEMCPY2D
struct CudaRowCopy {
  std::size_t from_x, from_y;
  unsigned from_kind;
  const void* from_host;
  CUdeviceptr from_device;
  void* from_array;
  std::size_t from_pitch;
  std::size_t to_x, to_y;
  unsigned to_kind;
  void* to_host;
  CUdeviceptr to_device;
  void* to_array;
  std::size_t to_pitch;
  std::size_t width, height;
};

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetName(char* name, int length, CUdevice device);
CUresult cuDeviceGetPCIBusId(char* name, int length, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuCtxSynchronize(void);

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes);
CUresult cuMemAllocHost_v2(void** address, std::size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr address);
// Of a pool: no handle leads to it, and it is of no context. What the stream has to do first is not waited for.
CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuMemFreeHost(void* address);
CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void* address);
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr address);
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr address);
// Allocations apart from their addresses, and handed on as files; `properties` are not looked at.
CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const void* properties, int option);
CUresult cuMemCreate(unsigned long long* handle, std::size_t bytes, const void* properties, unsigned long long flags);
CUresult cuMemRelease(unsigned long long handle);
CUresult cuMemRetainAllocationHandle(unsigned long long* handle, void* address);
CUresult cuMemExportToShareableHandle(void* file, unsigned long long handle, int kind, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(unsigned long long* handle, void* file, int kind);
CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes);
CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset, unsigned long long handle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const void* access, std::size_t count);

CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);
CUresult cuMemcpy2DAsync_v2(const CudaRowCopy* copy, CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes);

CUresult cuModuleLoadData(CUmodule* module, const void* image);
CUresult cuModuleUnload(CUmodule module);
// plait_pack and plait_unpack, plait_reduce_... and plait_move; and fake_add(int* numbers, unsigned count, int term),
// for tests.
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
                        void** extra);
CUresult cuGetErrorName(CUresult result, const char** name);

// Where the processor finds what lies at an address of device memory; nullptr: it is none.
void* fake_cuda_data(const void* device_address);
// Questions for an address, copies and kernels, so far.
long fake_cuda_questions(void);
long fake_cuda_copies(void);
long fake_cuda_kernels(void);
// Other processes' allocations that are mapped now: each once, however often it was opened. As with CUDA, a handle that
// is open already leads to the mapping that it has; one of an allocation in place of one that was freed may be the
// same.
long fake_cuda_mapped(void);
// What streams were given and have not done.
long fake_cuda_pending(void);
// The copy after so many more fails, and all that follow; negative: none does.
void fake_cuda_fail_after(long copies);
// The call of that function after so many more fails with that result, and all that follow; negative: none does.
// "execution": copies fail when they are done, after their calls have returned. "parts in time": kernels that add what
// comes from other ranks take it for late.
void fake_cuda_fail(const char* function, long calls, CUresult result);
}
