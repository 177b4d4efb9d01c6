#include "core/intern.h"

#include <mutex>
#include <set>
#include <string>

#include "core/immortal.h"

namespace plait {

const char* intern(std::string_view text) {
  static constinit std::mutex guard;
  const std::scoped_lock lock(guard);
  static Immortal<std::set<std::string, std::less<>>> kept;
  auto& texts = *kept;
  auto found = texts.find(text);
  if (found == texts.end()) found = texts.emplace(text).first;
  return found->c_str();
}

}  // namespace plait
