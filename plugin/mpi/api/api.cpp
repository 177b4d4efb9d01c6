// The public C API.
#include "plait/plait.h"

#include <cmath>

#include "plugin/layer.h"
#include "runtime/job/job.h"
#include "runtime/progress/progress_share.h"
#include "runtime/progress/progress_thread.h"
#include "runtime/recorder/recorder.h"

#ifndef PLAIT_VERSION
#error "the build defines PLAIT_VERSION"
#endif

extern "C" {

const char* plait_version(void) { return PLAIT_VERSION; }

int plait_set_enabled(int enabled) { return plait::runtime::detail::enabled.exchange(enabled != 0) ? 1 : 0; }

const char* plait_last_plan(void) { return plait::plugin::last_call().plan; }

const char* plait_last_channels(void) { return plait::plugin::last_call().channels; }

unsigned long plait_trial_calls(void) { return plait::runtime::trial_calls(); }

int plait_set_progress_duty(int percent) {
  if (percent < 1 || percent > 100) return -1;
  return static_cast<int>(
      std::lround(plait::plugin::ProgressShare::instance().set_default_duty(percent / 100.0) * 100));
}

int plait_set_progress_threads(int threads) {
  if (threads < 1 || threads > plait::plugin::most_helper_threads) return -1;
  plait::plugin::provide_helper_threads(threads);
  return plait::plugin::ProgressShare::instance().set_default_threads(threads);
}

void plait_step(void) {
  if (plait::runtime::Recorder* recorder = plait::runtime::recorder(); recorder != nullptr) recorder->add_mark();
}

}  // extern "C"
