#include "tests/differential/binding.h"

#include <dlfcn.h>
#include <mpi.h>

#include "plait/plait.h"
#include "plait/plait_mpi.h"

namespace plait::test {
namespace {

// Looked up by name: the test must also start, and say so, without the library.
template <class Function>
Function* find(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, symbol));
}

struct Binding {
  decltype(&plait_set_enabled) set_enabled = find<decltype(plait_set_enabled)>("plait_set_enabled");
  decltype(&plait_set_plan) set_plan = find<decltype(plait_set_plan)>("plait_set_plan");
  decltype(&plait_last_plan) plan = find<decltype(plait_last_plan)>("plait_last_plan");
  decltype(&plait_last_channels) channels = find<decltype(plait_last_channels)>("plait_last_channels");
};

const Binding& binding() {
  static const Binding found;
  return found;
}

}  // namespace

bool plait_present() { return binding().set_enabled && binding().plan && binding().channels; }

void enable_plait(bool enabled, MPI_Comm own) {
  if (!plait_present()) return;
  binding().set_enabled(enabled ? 1 : 0);
  if (!enabled) return;
  const int one = 1;
  int sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
}

void force_plan(MPI_Comm comm, const std::string& plan) {
  if (!binding().set_plan) return;
  binding().set_plan(comm, "");
  if (!plan.empty()) binding().set_plan(comm, plan.c_str());
}

const char* last_plan() { return plait_present() ? binding().plan() : ""; }

const char* last_channels() { return plait_present() ? binding().channels() : ""; }

}  // namespace plait::test
