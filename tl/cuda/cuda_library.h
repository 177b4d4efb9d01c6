// The functions of NVIDIA's driver that are called, found in the library that the program has loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/status.h"

namespace plait::tl {

// As in cuda.h, which is seldom installed where Plait is built.
struct Cuda {
  using Outcome = int;
  using Address = unsigned long long;
  using Context = void*;
  using Stream = void*;
  using Event = void*;
  using Module = void*;
  using Function = void*;
  struct RowCopy;  // CUDA_MEMCPY2D
  struct IpcHandle {
    char reserved[64];
  };

  static constexpr Outcome success = 0, not_ready = 600;

  Outcome (*pointer_attributes)(unsigned count, int* attributes, void** values, Address address) = nullptr;
  Outcome (*current_context)(Context*) = nullptr;
  Outcome (*push_context)(Context) = nullptr;
  Outcome (*pop_context)(Context*) = nullptr;
  Outcome (*primary_context)(Context*, int device) = nullptr;
  Outcome (*bus_name)(char* name, int length, int device) = nullptr;
  Outcome (*copy)(Address to, Address from, std::size_t bytes, Stream stream) = nullptr;
  Outcome (*copy_rows)(const RowCopy*, Stream stream) = nullptr;
  Outcome (*make_stream)(Stream*, unsigned flags) = nullptr;
  Outcome (*end_stream)(Stream) = nullptr;
  Outcome (*synchronize)(Stream) = nullptr;
  Outcome (*wait_for)(Stream, Event, unsigned flags) = nullptr;
  Outcome (*make_event)(Event*, unsigned flags) = nullptr;
  Outcome (*end_event)(Event) = nullptr;
  Outcome (*record)(Event, Stream) = nullptr;
  Outcome (*query)(Event) = nullptr;
  Outcome (*pin)(void* address, std::size_t bytes, unsigned flags) = nullptr;
  Outcome (*unpin)(void* address) = nullptr;
  Outcome (*load_module)(Module*, const void* image) = nullptr;
  Outcome (*find_function)(Function*, Module, const char* name) = nullptr;
  Outcome (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                    unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters, void** extra) = nullptr;
  Outcome (*error_name)(Outcome, const char**) = nullptr;
  // These two may be missing, both at once.
  Outcome (*allocate)(Address*, std::size_t bytes) = nullptr;
  Outcome (*release)(Address) = nullptr;
  // Likewise these three.
  Outcome (*get_handle)(IpcHandle*, Address) = nullptr;
  Outcome (*open_handle)(Address*, IpcHandle, unsigned flags) = nullptr;
  Outcome (*close_handle)(Address) = nullptr;
  // Likewise what maps memory apart from its addresses.
  using Memory = unsigned long long;
  Outcome (*memory_of)(Memory*, void* address) = nullptr;
  Outcome (*let_memory_go)(Memory) = nullptr;
  Outcome (*memory_to_file)(void* file, Memory, int kind, unsigned long long flags) = nullptr;
  Outcome (*memory_from_file)(Memory*, void* file, int kind) = nullptr;
  Outcome (*reserve_addresses)(Address*, std::size_t bytes, std::size_t alignment, Address wanted,
                               unsigned long long flags) = nullptr;
  Outcome (*free_addresses)(Address, std::size_t bytes) = nullptr;
  Outcome (*map_memory)(Address, std::size_t bytes, std::size_t offset, Memory, unsigned long long flags) = nullptr;
  Outcome (*unmap_memory)(Address, std::size_t bytes) = nullptr;
  struct Access {  // CUmemAccessDesc
    int place_kind, device, rights;
  };
  Outcome (*allow_access)(Address, std::size_t bytes, const Access*, std::size_t count) = nullptr;

  // Of dlopen(). None where the library lacks a function.
  static std::optional<Cuda> in(void* library);

  std::string text_of(Outcome outcome) const;
  // "the CUDA driver could not `what`: ..."
  Status failure(const std::string& what, Outcome outcome) const;
};

// The calling thread's default stream: in order with the kernels that a program starts on default streams.
inline Cuda::Stream program_stream() { return reinterpret_cast<Cuda::Stream>(std::uintptr_t{2}); }
inline Cuda::Address as_address(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// For its life the calling thread has a context: its own, or else the given one.
class CudaContext {
 public:
  CudaContext(const Cuda& cuda, Cuda::Context wanted) : cuda_(cuda) {
    Cuda::Context current = nullptr;
    outcome_ = cuda_.current_context(&current);
    if (outcome_ != Cuda::success || current == wanted || wanted == nullptr) return;
    outcome_ = cuda_.push_context(wanted);
    pushed_ = outcome_ == Cuda::success;
  }
  ~CudaContext() {
    Cuda::Context popped = nullptr;
    if (pushed_) cuda_.pop_context(&popped);
  }
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // Calls one function after the other, until one fails.
  template <class Call>
  CudaContext& then(Call&& call) {
    if (outcome_ == Cuda::success) outcome_ = call();
    return *this;
  }
  Cuda::Outcome outcome() const { return outcome_; }

 private:
  const Cuda& cuda_;
  Cuda::Outcome outcome_ = Cuda::success;
  bool pushed_ = false;
};

}  // namespace plait::tl
