// One copy of each text, which is never freed: for the few names that outlive what they name.
#pragma once

#include <string_view>

namespace plait {

// Thread-safe. Throws where memory is short.
const char* intern(std::string_view text);

}  // namespace plait
