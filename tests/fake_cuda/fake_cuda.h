// A libcuda.so.1 without a GPU. What it calls device memory has an address that the processor may not touch: whoever
// does gets a SIGSEGV. The data lie in other memory, which the driver's copies reach.
//
// It has the functions of CUDA's driver that Plait and the tests call, under their own names and with CUDA's types, and
// these for tests.
#pragma once

#include <cstddef>

extern "C" {

using CUresult = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;

CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, int device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext* context);
CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes);
CUresult cuMemAllocHost_v2(void** address, std::size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** values, CUdeviceptr address);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuGetErrorName(CUresult result, const char** name);

// Where the processor finds what lies at an address of device memory; nullptr: it is none.
void* fake_cuda_data(const void* device_address);
// Questions for an address, and copies, so far.
long fake_cuda_questions(void);
long fake_cuda_copies(void);
// The copy after so many more fails, and all that follow; negative: none does.
void fake_cuda_fail_after(long copies);
}
