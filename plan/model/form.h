// How a program may make a collective call.
#pragma once

#include <cstdint>

#include "plan/model/layer.h"

namespace plait::plan {

enum class Form : std::uint8_t { blocking, nonblocking, persistent };
inline constexpr int form_count = 3;

}  // namespace plait::plan
