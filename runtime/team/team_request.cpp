#include "runtime/team/team_request.h"

#include <algorithm>

#include "runtime/job/job.h"

namespace plait::runtime {

bool may_use(const std::vector<std::string>& channels, ChannelKind channel) {
  const auto& named = channels.empty() ? job().config.channels : channels;
  return std::ranges::find(named, name(channel)) != named.end();
}

}  // namespace plait::runtime
