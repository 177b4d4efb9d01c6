#include "plugin/preload/interposed.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "plugin/host.h"

namespace plait::preload {

constinit std::atomic<bool> detail::resolved{false};
constinit std::array<void*, function_count> detail::tools{};
thread_local constinit std::uint64_t detail::inside = 0;

namespace {

// Without the host's function there is no MPI to speak of, and no communicator to raise an error on.
void* host_function(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found != nullptr) return found;
  std::fprintf(stderr, "plait: error: no MPI library defines %s\n", symbol);
  std::abort();
}

// The library's own MPI_ names are other names of its PMPI_ functions: anything else between us and them is a tool.
void* tool_function(const char* symbol, const void* host) {
  void* found = dlsym(RTLD_NEXT, symbol);
  return found != host ? found : nullptr;
}

}  // namespace

void detail::resolve() {
  static constinit std::mutex guard;
  const std::scoped_lock lock(guard);
  if (resolved.load(std::memory_order_relaxed)) return;
  Host host;
  void* found = nullptr;
#define PLAIT_RESOLVE(Name, name, parameters, arguments)    \
  found = host_function("PMPI_" #Name);                     \
  host.name = reinterpret_cast<decltype(host.name)>(found); \
  tools[static_cast<std::size_t>(Function::name)] = tool_function("MPI_" #Name, found);
  PLAIT_INTERPOSED(PLAIT_RESOLVE)
#undef PLAIT_RESOLVE
#define PLAIT_RESOLVE(Name, name, parameters, arguments)                                    \
  found = host_function("PMPI_I" #name);                                                    \
  host.i##name = reinterpret_cast<decltype(host.i##name)>(found);                           \
  tools[static_cast<std::size_t>(Function::i##name)] = tool_function("MPI_I" #name, found); \
  found = host_function("P" PLAIT_PERSISTENT_NAME(Name));                                   \
  host.name##_init = reinterpret_cast<decltype(host.name##_init)>(found);                   \
  tools[static_cast<std::size_t>(Function::name##_init)] = tool_function(PLAIT_PERSISTENT_NAME(Name), found);
  PLAIT_COLLECTIVES(PLAIT_RESOLVE)
#undef PLAIT_RESOLVE
  install_host(host);
  resolved.store(true, std::memory_order_release);
}

}  // namespace plait::preload
