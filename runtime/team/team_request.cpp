#include "runtime/team/team_request.h"

#include <algorithm>

#include "runtime/job/job.h"

namespace plait::runtime {

bool may_use(const std::vector<std::string>& channels, std::string_view channel) {
  const auto& named = channels.empty() ? job().config.channels : channels;
  return std::ranges::find(named, channel) != named.end();
}

}  // namespace plait::runtime
