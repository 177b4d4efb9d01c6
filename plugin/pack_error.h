// What is said of data that could not be brought to where the engine works on them.
#pragma once

#include "core/status.h"
#include "plugin/errors.h"

namespace plait::plugin {

// `code`: of layout.h's functions.
inline Status pack_error(int code) {
  return {Code::internal, "could not pack or unpack the data: " + status_of(code).message()};
}

}  // namespace plait::plugin
