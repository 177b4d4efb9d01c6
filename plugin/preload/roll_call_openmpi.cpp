// Open MPI's processes exchange their addresses (the modex) while MPI starts. Each rank's answer goes with these: it is
// given between the start of Open MPI's runtime and that exchange.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "core/imported_function.h"
#include "core/text_hash.h"
#include "plait/plait.h"
#include "plugin/layer.h"
#include "plugin/mpi/host/host.h"
#include "plugin/ompi/modex.h"
#include "plugin/preload/roll_call.h"

namespace plait::plugin::preload {
namespace {

constexpr const char* key = "plait.preload";

std::uint32_t own_version() { return static_cast<std::uint32_t>(hash_text(plait_version())); }

void* hooked_function = nullptr;
bool came = false, answered = false;  // to the exchange

void answer() {
  if (!came) answered = plait_ompi_tell_all(key, own_version());
  came = true;
}

#if OMPI_MAJOR_VERSION == 4
constexpr const char* hooked = "orte_init";  // the runtime's start

int answer_within(int* argc, char*** argv, std::uint32_t kind) {
  const int code = reinterpret_cast<decltype(&answer_within)>(hooked_function)(argc, argv, kind);
  if (code == 0) answer();
  return code;
}
#else
constexpr const char* hooked = "PMIx_Commit";  // what this process says to all is complete

int answer_within() {
  answer();
  return reinterpret_cast<decltype(&answer_within)>(hooked_function)();
}
#endif

// Open MPI's inner structures are those of one series.
bool is_series_of_build() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  char series[32] = "";
  int length = 0;
  std::snprintf(series, sizeof series, "Open MPI v%d.%d.", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
  PMPI_Get_library_version(text, &length);
  return std::string_view(text).starts_with(series);
}

const void* inside() { return reinterpret_cast<const void*>(host().init); }

// The library may be out of the global scope.
void* find_hooked() {
  Dl_info mpi{};
  if (dladdr(inside(), &mpi) == 0) return nullptr;
  void* library = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? dlsym(library, hooked) : nullptr;
}

}  // namespace

void begin_roll_call() {
  if (!is_series_of_build()) return;
  hooked_function = find_hooked();
  if (hooked_function == nullptr) return;
  replace_imported_function(inside(), hooked, reinterpret_cast<const void*>(&answer_within));
}

void leave_roll_call() {
  if (hooked_function != nullptr) replace_imported_function(inside(), hooked, hooked_function);
}

Attendance end_roll_call() {
  leave_roll_call();
  int ranks = 1, rank = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks == 1) return {};
  if (!came || !plait_ompi_may_ask()) return {.known = false};
  if (!answered) return {.first_present = rank, .first_absent = rank};  // as the others see it
  return call_roll(ranks, [](int other) { return plait_ompi_rank_told(other, key, own_version()); });
}

}  // namespace plait::plugin::preload
