// Messages to the user on standard error: "plait: warning: ...". Rare, one line each, once for each
// distinct text.
#pragma once

#include <string_view>

namespace plait {

enum class Verbosity { silent = 0, warnings = 1, info = 2, debug = 3 };

// Process-wide; set once at start-up. Default: warnings.
void set_verbosity(Verbosity verbosity);

// Thread-safe. A warning whose text was already printed in this process is not printed again. What there is no memory
// for is not said.
void warn(std::string_view message) noexcept;
void info(std::string_view message) noexcept;
void debug(std::string_view message) noexcept;

}  // namespace plait
