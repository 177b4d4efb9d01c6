// The functions that libplait.so defines in MPI's place, and what lies behind each of them in the order of symbols.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "plugin/collective_functions.h"

// X(Name, name, parameters, arguments), as in PLAIT_COLLECTIVES.
#define PLAIT_FRAME(X)                                                                \
  X(Init, init, (int* argc, char*** argv), (argc, argv))                              \
  X(Init_thread, init_thread, (int* argc, char*** argv, int required, int* provided), \
    (argc, argv, required, provided))                                                 \
  X(Finalize, finalize, (), ())

#define PLAIT_MEMORY(X)                                                                   \
  X(Alloc_mem, alloc_mem, (MPI_Aint size, MPI_Info info, void* base), (size, info, base)) \
  X(Free_mem, free_mem, (void* base), (base))

#define PLAIT_INTERPOSED(X) PLAIT_FRAME(X) PLAIT_MEMORY(X) PLAIT_COLLECTIVES(X)

namespace plait::preload {

enum class Function : std::uint8_t {
#define PLAIT_ENUMERATOR(Name, name, parameters, arguments) name,
  PLAIT_INTERPOSED(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
      count_,
};
inline constexpr std::size_t function_count = static_cast<std::size_t>(Function::count_);

namespace detail {
extern constinit std::atomic<bool> resolved;
extern constinit std::array<void*, function_count> tools;
extern thread_local constinit std::uint32_t inside __attribute__((tls_model("initial-exec")));
void resolve();
}  // namespace detail

// Fills the table of the host's functions and finds the tools behind us, at the first call of any function: this
// library is loaded into processes that have nothing to do with MPI (mpirun, shells), and does nothing there.
inline void ensure_resolved() {
  if (!detail::resolved.load(std::memory_order_acquire)) [[unlikely]]
    detail::resolve();
}

// The MPI_ function of a PMPI tool that was loaded behind us, while it runs; its call of the PMPI_ function comes back
// to us. nullptr when there is none, or when the tool itself called us, which must not bring us back to it.
class ToolCall {
 public:
  explicit ToolCall(Function function) : bit_(1u << static_cast<unsigned>(function)) {
    void* behind = detail::tools[static_cast<std::size_t>(function)];
    if (behind == nullptr || (detail::inside & bit_) != 0) return;
    detail::inside |= bit_;
    tool_ = behind;
  }
  ~ToolCall() {
    if (tool_ != nullptr) detail::inside &= ~bit_;
  }
  ToolCall(const ToolCall&) = delete;
  ToolCall& operator=(const ToolCall&) = delete;
  void* tool() const { return tool_; }

 private:
  std::uint32_t bit_;
  void* tool_ = nullptr;
};

}  // namespace plait::preload
