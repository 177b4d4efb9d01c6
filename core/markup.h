// Text within HTML and XML.
#pragma once

#include <string>
#include <string_view>

namespace plait {

// The text with & < > " ' written as references, and '?' for each byte that is no part of UTF-8 and each character that
// XML 1.0 does not allow: safe as content and within quotes of either kind.
std::string escape_markup(std::string_view text);

}  // namespace plait
