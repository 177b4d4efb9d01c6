#include "runtime/progress/helper_bell.h"

namespace plait::runtime {
namespace {

constinit HelperBell bell;
thread_local constinit bool is_helper = false;

}  // namespace

HelperBell& helper_bell() { return bell; }

bool on_helper_thread() { return is_helper; }

void become_helper_thread() { is_helper = true; }

}  // namespace plait::runtime
