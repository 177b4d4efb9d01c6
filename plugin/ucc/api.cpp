// What programs and tests call by name (plait/plait.h), where the component is among the process's global symbols.
#include "plait/plait.h"

#include "plugin/layer.h"
#include "runtime/job/job.h"

extern "C" {

// What UCC's caller does not bring to UCC afterwards is no call of ours.
int plait_set_enabled(int enabled) {
  plait::runtime::note_host_call();
  return plait::runtime::detail::enabled.exchange(enabled != 0, std::memory_order_acq_rel) ? 1 : 0;
}

const char* plait_last_plan(void) { return plait::runtime::last_call().plan; }

const char* plait_last_channels(void) { return plait::runtime::last_call().channels; }

}  // extern "C"
