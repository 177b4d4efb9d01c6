// The functions that libplait.so defines in MPI's place, and what lies behind each of them in the order of symbols.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>

// X(Name, name, parameters, arguments): MPI_Name and PMPI_Name; `name` is its place in Host and in plait::door.
#define PLAIT_COLLECTIVES(X)                                                                                          \
  X(Barrier, barrier, (MPI_Comm comm), (comm))                                                                        \
  X(Bcast, bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),                              \
    (buffer, count, type, root, comm))                                                                                \
  X(Reduce, reduce,                                                                                                   \
    (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),              \
    (send, receive, count, type, op, root, comm))                                                                     \
  X(Allreduce, allreduce, (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),  \
    (send, receive, count, type, op, comm))                                                                           \
  X(Allgather, allgather,                                                                                             \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,           \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, comm))                                                        \
  X(Allgatherv, allgatherv,                                                                                           \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, const int counts[],                     \
     const int displacements[], MPI_Datatype type, MPI_Comm comm),                                                    \
    (send, send_count, send_type, receive, counts, displacements, type, comm))                                        \
  X(Gather, gather,                                                                                                   \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root, \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, root, comm))                                                  \
  X(Scatter, scatter,                                                                                                 \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type, int root, \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, root, comm))                                                  \
  X(Alltoall, alltoall,                                                                                               \
    (const void* send, int send_count, MPI_Datatype send_type, void* receive, int count, MPI_Datatype type,           \
     MPI_Comm comm),                                                                                                  \
    (send, send_count, send_type, receive, count, type, comm))                                                        \
  X(Reduce_scatter_block, reduce_scatter_block,                                                                       \
    (const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                        \
    (send, receive, count, type, op, comm))                                                                           \
  X(Reduce_scatter, reduce_scatter,                                                                                   \
    (const void* send, void* receive, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),               \
    (send, receive, counts, type, op, comm))

#define PLAIT_FRAME(X)                                                                \
  X(Init, init, (int* argc, char*** argv), (argc, argv))                              \
  X(Init_thread, init_thread, (int* argc, char*** argv, int required, int* provided), \
    (argc, argv, required, provided))                                                 \
  X(Finalize, finalize, (), ())

#define PLAIT_MEMORY(X)                                                                   \
  X(Alloc_mem, alloc_mem, (MPI_Aint size, MPI_Info info, void* base), (size, info, base)) \
  X(Free_mem, free_mem, (void* base), (base))

#define PLAIT_REQUESTS(X)                                                       \
  X(Start, start, (MPI_Request * request), (request))                           \
  X(Startall, startall, (int count, MPI_Request requests[]), (count, requests)) \
  X(Request_free, request_free, (MPI_Request * request), (request))             \
  X(Wait, wait, (MPI_Request * request, MPI_Status * status), (request, status))

#define PLAIT_INTERPOSED(X) PLAIT_FRAME(X) PLAIT_MEMORY(X) PLAIT_REQUESTS(X) PLAIT_COLLECTIVES(X)

// The other forms of the collectives have the same parameters and some more.
#define PLAIT_LISTED(...) __VA_ARGS__

namespace plait::preload {

enum class Function : std::uint8_t {
#define PLAIT_ENUMERATOR(Name, name, parameters, arguments) name,
  PLAIT_INTERPOSED(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
#define PLAIT_ENUMERATOR(Name, name, parameters, arguments) i##name, name##_init,
      PLAIT_COLLECTIVES(PLAIT_ENUMERATOR)
#undef PLAIT_ENUMERATOR
          count_,
};
inline constexpr std::size_t function_count = static_cast<std::size_t>(Function::count_);
static_assert(function_count <= 64);  // bits of detail::inside

namespace detail {
extern constinit std::atomic<bool> resolved;
extern constinit std::array<void*, function_count> tools;
extern thread_local constinit std::uint64_t inside __attribute__((tls_model("initial-exec")));
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
  explicit ToolCall(Function function) : bit_(std::uint64_t{1} << static_cast<unsigned>(function)) {
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
  std::uint64_t bit_;
  void* tool_ = nullptr;
};

}  // namespace plait::preload
