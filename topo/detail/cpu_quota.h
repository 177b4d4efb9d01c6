// How many processors the control groups of this process let it use. Internal to topo/ and its tests.
#pragma once

#include <string_view>

namespace plait::topo::detail {

// Whole processors (quota over period, rounded down, at least 1) that the tightest CPU limit among the process's
// control group and its ancestors leaves; 0 when nothing limits them. Understands cgroup v1 and v2.
// `filesystem_root` stands before /proc and /sys, so that tests can show it another machine; "" is this one.
int cgroup_processors(std::string_view filesystem_root);

}  // namespace plait::topo::detail
