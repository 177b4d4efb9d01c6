// What an implementation does for libplait.so: both names of each function
// (docs/decisions/001-interpose-both-names.md).
//
// A program's call of MPI_X, and that of a tool behind us, arrive here. So do the calls of PMPI_X: from tools before
// us, and from the host's own Fortran bindings, which have then turned Fortran's MPI_IN_PLACE, MPI_BOTTOM and handles
// into C's.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "core/log.h"
#include "plait/plait_fused.h"
#include "plait/plait_mpi.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/collectives.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/call/record_call.h"
#include "plugin/mpi/communicator/made_communicator.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/shared_memory.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/persistent.h"
#include "plugin/preload/implementation.h"
#include "plugin/preload/roll_call.h"
#include "plugin/preload/tools.h"
#include "runtime/job/job.h"
#include "tl/shm/shared_heap.h"
#include "tl/trace.h"

namespace plait::plugin::preload {

constinit std::array<void*, function_count> detail::tools{};
thread_local constinit std::array<bool, function_count> detail::inside{};

namespace {

constinit Surroundings behind;

// ---- The shared heap's blocks for the process's allocator ----

void* allocate(std::size_t bytes, std::size_t alignment) {
  SharedHeap* shared_heap = SharedHeap::instance();
  return shared_heap == nullptr ? nullptr : shared_heap->allocate(bytes, alignment);
}

void* allocate_zeroed(std::size_t bytes) {
  SharedHeap* shared_heap = SharedHeap::instance();
  return shared_heap == nullptr ? nullptr : shared_heap->allocate_zeroed(bytes);
}

void release(void* block) {
  if (!SharedHeap::release(block)) warn("free: a pointer that is not the start of a block is ignored");
}

// Without a shared heap it was said why.
void offer_blocks(bool share) {
  if (SharedHeap::instance() == nullptr) return;
  behind.know_blocks({.begin = plait::tl::detail::shared_heap_range.begin.load(),
                      .bytes = plait::tl::detail::shared_heap_range.bytes.load(),
                      .allocate = allocate,
                      .allocate_zeroed = allocate_zeroed,
                      .resize = SharedHeap::resize,
                      .release = release,
                      .usable_size = SharedHeap::usable_size,
                      .mapped_over = SharedHeap::mapped_over,
                      .owns_any = SharedHeap::owns_any,
                      .unmap = SharedHeap::unmap,
                      .drop = SharedHeap::drop});
  if (share && !behind.share_allocations())
    warn("PLAIT_SHARED=malloc: the program has an allocator of its own; its memory stays private");
}

// ---- The frame of MPI's life ----

// An MPI library starts itself again only after MPI_Finalize, which ends us for good.
template <class Call>
int initialise(Call&& call) {
  if (phase() != Phase::before) return call();  // the host reports a second initialisation
  begin_initialisation();
  begin_roll_call();
  const int error = call();
  if (error != MPI_SUCCESS) {
    leave_roll_call();
    end_initialisation(false);
    return error;
  }
  const std::uint64_t begin_ns = monotonic_ns();
  const Attendance attendance = end_roll_call();
  const std::uint64_t took_us = (monotonic_ns() - begin_ns) / 1000;
  end_initialisation(attendance);
  try {
    debug("roll call: " + std::to_string(took_us) + " us");
    if (phase() == Phase::open) offer_blocks(job().config.shared == "malloc");
  } catch (const std::exception&) {  // no memory for what is said
  }
  return error;
}

int init(int* argc, char*** argv) {
  return initialise([&] { return host().init(argc, argv); });
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  return initialise([&] { return host().init_thread(argc, argv, required, provided); });
}

int finalize() {
  finish();
  return host().finalize();
}

// ---- The entries ----

namespace pmpi {

#define PLAIT_FROM_FRAME(Name, name, parameters, arguments) constexpr auto name = preload::name;
PLAIT_FRAME(PLAIT_FROM_FRAME)
#undef PLAIT_FROM_FRAME
#define PLAIT_FROM_BINDING(Name, name, parameters, arguments) constexpr auto name = binding::name;
PLAIT_MEMORY(PLAIT_FROM_BINDING)
PLAIT_REQUESTS(PLAIT_FROM_BINDING)
PLAIT_COMMUNICATORS(PLAIT_FROM_BINDING)
PLAIT_COLLECTIVES(PLAIT_FROM_BINDING)
#undef PLAIT_FROM_BINDING
#define PLAIT_FROM_BINDING(Name, name, parameters, arguments) \
  constexpr auto i##name = binding::i##name;                  \
  constexpr auto name##_init = binding::name##_init;
PLAIT_COLLECTIVES(PLAIT_FROM_BINDING)
#undef PLAIT_FROM_BINDING

}  // namespace pmpi

namespace mpi {

#define PLAIT_DEFINE_NAMED(Symbol, name, function, parameters, arguments)                          \
  int name parameters {                                                                            \
    if (function >= Function::Barrier && plait::runtime::recorder() != nullptr)                    \
      note_site(__builtin_return_address(0));                                                      \
    const ToolCall call(function);                                                                 \
    if (call.tool() != nullptr) return reinterpret_cast<decltype(&Symbol)>(call.tool()) arguments; \
    return pmpi::name arguments;                                                                   \
  }
#define PLAIT_DEFINE(Name, name, parameters, arguments) \
  PLAIT_DEFINE_NAMED(MPI_##Name, name, Function::Name, parameters, arguments)
#define PLAIT_DEFINE_FORMS(Name, name, parameters, arguments)                                                 \
  PLAIT_DEFINE_NAMED(MPI_I##name, i##name, Function::I##name, (PLAIT_LIST parameters, MPI_Request * request), \
                     (PLAIT_LIST arguments, request))                                                         \
  PLAIT_DEFINE_NAMED(PLAIT_PERSISTENT(Name), name##_init, Function::Name##_init,                              \
                     (PLAIT_LIST parameters, MPI_Info info, MPI_Request * request),                           \
                     (PLAIT_LIST arguments, info, request))
PLAIT_INTERPOSED(PLAIT_DEFINE)
PLAIT_COLLECTIVES(PLAIT_DEFINE_FORMS)
#undef PLAIT_DEFINE_FORMS
#undef PLAIT_DEFINE
#undef PLAIT_DEFINE_NAMED

}  // namespace mpi

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

Entries own_entries() {
  Entries entries{
      .functions = {{
#define PLAIT_ENTRY(Name, name, parameters, arguments) {.mpi = address(mpi::name), .pmpi = address(pmpi::name)},
          PLAIT_INTERPOSED(PLAIT_ENTRY)
#undef PLAIT_ENTRY
#define PLAIT_ENTRY(Name, name, parameters, arguments)            \
  {.mpi = address(mpi::i##name), .pmpi = address(pmpi::i##name)}, \
      {.mpi = address(mpi::name##_init), .pmpi = address(pmpi::name##_init)},
              PLAIT_COLLECTIVES(PLAIT_ENTRY)
#undef PLAIT_ENTRY
      }},
      .extensions = {},
      .api =
          {
#define PLAIT_ENTRY(name) address(plait_##name),
              PLAIT_API_FUNCTIONS(PLAIT_ENTRY)
#undef PLAIT_ENTRY
          },
  };
  name_extensions(entries);
  return entries;
}

Host host_of(const Surroundings& surroundings) {
  Host host;
#define PLAIT_HOST(Name, name, parameters, arguments) \
  host.name = reinterpret_cast<decltype(host.name)>(surroundings.host[static_cast<std::size_t>(Function::Name)]);
  PLAIT_INTERPOSED(PLAIT_HOST)
#undef PLAIT_HOST
  const auto found = [&](Function function) { return surroundings.host[static_cast<std::size_t>(function)]; };
#define PLAIT_HOST(Name, name, parameters, arguments)                                \
  host.i##name = reinterpret_cast<decltype(host.i##name)>(found(Function::I##name)); \
  host.name##_init = reinterpret_cast<decltype(host.name##_init)>(found(Function::Name##_init));
  PLAIT_COLLECTIVES(PLAIT_HOST)
#undef PLAIT_HOST
  return host;
}

// A program cannot call the forms that its MPI library has not.
bool has_all(const Surroundings& surroundings) {
  for (std::size_t index = 0; index < function_count; ++index) {
    const bool newer = std::ranges::find(extended, static_cast<Function>(index)) != extended.end();
    if (surroundings.host[index] == nullptr && !newer) return false;
  }
  return true;
}

}  // namespace
}  // namespace plait::plugin::preload

extern "C" __attribute__((visibility("default"))) bool plait_attach(
    const char* version, std::size_t bytes, const plait::plugin::preload::Surroundings& surroundings,
    plait::plugin::preload::Entries& entries) {
  using namespace plait::plugin::preload;
  static constinit std::mutex guard;
  static constinit bool attached = false;
  if (bytes != interface_bytes || std::strcmp(version, plait_version()) != 0 || !has_all(surroundings)) return false;
  const std::scoped_lock lock(guard);
  if (!attached) {
    behind = surroundings;
    detail::tools = surroundings.tools;
    plait::plugin::install_host(host_of(surroundings));
    plait::plugin::register_fork_by(surroundings.handle_fork);
    attached = true;
  }
  entries = own_entries();
  return true;
}
