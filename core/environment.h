// Variables of the process's environment that are no PLAIT_* setting: what a launcher tells its processes.
#pragma once

#include <string>
#include <string_view>

namespace plait {

// Empty: there is none.
std::string process_variable(std::string_view name);

}  // namespace plait
