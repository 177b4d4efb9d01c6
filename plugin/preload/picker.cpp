// What libplait.so does at the first call of one of its functions: it finds the MPI library of the process, loads the
// implementation for it, and lets all jumps (jumps.S) lead there; where that fails, to the MPI library itself. Not
// earlier: the library is loaded into processes that have nothing to do with MPI (mpirun, shells), and an interpreter
// loads MPI long after its start.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "plugin/preload/allocation.h"
#include "plugin/preload/fork_handlers.h"
#include "plugin/preload/implementation.h"
#include "plugin/preload/mpi_in_process.h"

#ifndef PLAIT_VERSION
#error "the build defines PLAIT_VERSION"
#endif

// Entries as a list; the functions' first, MPI_X before PMPI_X.
extern "C" void* plait_slots[] __attribute__((visibility("hidden")));
extern "C" void* plait_fill(void** slot);

namespace plait::plugin::preload {
namespace {

constexpr std::size_t named_count = function_count + extended.size();
static_assert(sizeof(Entries) == (2 * named_count + api_function_count) * sizeof(void*));
constexpr std::size_t slot_count = sizeof(Entries) / sizeof(void*);

void** slots_of(Entries& entries) { return reinterpret_cast<void**>(&entries); }

// At most one line a process: the log's own functions are the implementation's.
template <class... Words>
void warn_once(const char* format, Words... words) {
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::array<char, 1024> line{};
  std::snprintf(line.data(), line.size(), format, words...);
  std::fprintf(stderr, "plait: warning: %s: collectives are not accelerated\n", line.data());
}

// ---- Without an implementation ----

namespace absent {

constinit std::atomic<bool> enabled{true};

int error() { return 16; }  // by every mpi.h
const char* version() { return PLAIT_VERSION; }
int set_enabled(int on) { return enabled.exchange(on != 0) ? 1 : 0; }
const char* text() { return ""; }
unsigned long none() { return 0; }
int duty(int) { return 100; }
int threads(int) { return 1; }
void step() {}

void* alloc(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  return bytes > SIZE_MAX - page ? nullptr : std::aligned_alloc(page, std::max((bytes + page - 1) / page * page, page));
}

}  // namespace absent

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

constexpr std::size_t set_enabled_index = static_cast<std::size_t>(ApiFunction::set_enabled);

std::array<void*, api_function_count> absent_api() {
  std::array<void*, api_function_count> api{};
  api.fill(address(absent::error));
  const auto set = [&](ApiFunction function, void* to) { api[static_cast<std::size_t>(function)] = to; };
  set(ApiFunction::version, address(absent::version));
  set(ApiFunction::set_enabled, address(absent::set_enabled));
  set(ApiFunction::last_plan, address(absent::text));
  set(ApiFunction::last_channels, address(absent::text));
  set(ApiFunction::trial_calls, address(absent::none));
  set(ApiFunction::alloc, address(absent::alloc));
  set(ApiFunction::free, address(std::free));
  set(ApiFunction::set_progress_duty, address(absent::duty));
  set(ApiFunction::set_progress_threads, address(absent::threads));
  set(ApiFunction::step, address(absent::step));
  set(ApiFunction::reshard_describe, address(absent::text));
  set(ApiFunction::fused_describe, address(absent::text));
  return api;
}

// To the MPI library, by way of a tool where there is one.
Entries pass_through(const Surroundings& behind) {
  Entries entries{.functions = {}, .extensions = {}, .api = absent_api()};
  for (std::size_t index = 0; index < function_count; ++index) {
    void* host = behind.host[index] != nullptr ? behind.host[index] : address(absent::error);
    void* tool = behind.tools[index];
    entries.functions[index] = {.mpi = tool != nullptr ? tool : host, .pmpi = host};
  }
  name_extensions(entries);
  return entries;
}

// ---- The implementation ----

struct Symbols {
  const char* name;
  const char* extension;  // the same function's name before it was in the standard; nullptr: it was always
};

constexpr std::array<Symbols, function_count> profiling_names = {{
#define PLAIT_NAME(Name, name, parameters, arguments) {"PMPI_" #Name, nullptr},
    PLAIT_INTERPOSED(PLAIT_NAME)
#undef PLAIT_NAME
#define PLAIT_NAME(Name, name, parameters, arguments) \
  {"PMPI_I" #name, nullptr}, {"PMPI_" #Name "_init", "PMPIX_" #Name "_init"},
        PLAIT_COLLECTIVES(PLAIT_NAME)
#undef PLAIT_NAME
}};

// The MPI library's own MPI_ names are other names of its PMPI_ functions: anything else between us and them is a tool.
Surroundings look_around(const MpiInProcess& mpi) {
  Surroundings found{.host = {},
                     .tools = {},
                     .know_blocks = know_blocks,
                     .share_allocations = share_allocations,
                     .handle_fork = handle_fork};
  for (std::size_t index = 0; mpi.library != nullptr && index < function_count; ++index) {
    const char* name = profiling_names[index].name;
    found.host[index] = dlsym(mpi.library, name);
    if (found.host[index] == nullptr && profiling_names[index].extension != nullptr) {
      name = profiling_names[index].extension;
      found.host[index] = dlsym(mpi.library, name);
    }
    void* next = dlsym(RTLD_NEXT, name + 1);
    if (next != found.host[index]) found.tools[index] = next;
  }
  return found;
}

const char* file_of(const void* function) {
  Dl_info found{};
  return function != nullptr && dladdr(function, &found) != 0 ? found.dli_fname : "no library";
}

// An implementation that would bring another MPI library with it, or of another version of Plait, is none.
bool load(const MpiKind& kind, const Surroundings& behind, Entries& entries) {
  // Beside libplait.so, whose run path that is.
  void* loaded = dlopen(kind.implementation, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    warn_once("%s", dlerror());
    return false;
  }
  const void* own = dlsym(loaded, "PMPI_Init");
  const void* host = behind.host[static_cast<std::size_t>(Function::Init)];
  const auto attach = reinterpret_cast<Attach>(dlsym(loaded, attach_name));
  if (own != host) {
    warn_once("%s uses %s, but the program uses %s", kind.implementation, file_of(own), file_of(host));
  } else if (attach == nullptr || !attach(PLAIT_VERSION, interface_bytes, behind, entries)) {
    warn_once("%s is not of plait " PLAIT_VERSION ", as libplait.so is", kind.implementation);
  } else {
    return true;
  }
  dlclose(loaded);
  return false;
}

Entries choose(const MpiInProcess& mpi) {
  std::array<char, 256> known{};
  describe_known_kinds(known.data(), known.size());
  const Surroundings behind = look_around(mpi);
  Entries entries = pass_through(behind);
  if (mpi.kind == nullptr) {
    const void* host = behind.host[static_cast<std::size_t>(Function::Init)];
    warn_once("%s is no MPI library that plait knows: expected %s", file_of(host), known.data());
  } else if (load(*mpi.kind, behind, entries) && !absent::enabled.load()) {
    reinterpret_cast<decltype(&absent::set_enabled)>(entries.api[set_enabled_index])(0);
  }
  return entries;
}

// The program asks for MPI, or only for something of plait.h, before there is an MPI library.
void* without_mpi(std::size_t index) {
  if (index < 2 * named_count) {
    std::array<char, 256> known{};
    describe_known_kinds(known.data(), known.size());
    warn_once("no MPI library in this process: expected %s", known.data());
  }
  Entries entries = pass_through({});
  return slots_of(entries)[index];
}

}  // namespace
}  // namespace plait::plugin::preload

// Threads may do it at the same time: they find the same.
extern "C" void* plait_fill(void** slot) {
  using namespace plait::plugin::preload;
  const auto index = static_cast<std::size_t>(slot - plait_slots);
  const MpiInProcess mpi = find_mpi();
  if (mpi.library == nullptr) return without_mpi(index);
  Entries entries = choose(mpi);
  for (std::size_t i = 0; i < slot_count; ++i)
    __atomic_store_n(&plait_slots[i], slots_of(entries)[i], __ATOMIC_RELAXED);
  return slots_of(entries)[index];
}
