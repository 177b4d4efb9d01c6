#include "core/channel_kind.h"

namespace plait {

std::optional<ChannelKind> channel_named(std::string_view name) {
  for (std::size_t kind = 0; kind < all_channel_traits.size(); ++kind)
    if (all_channel_traits[kind].name == name) return static_cast<ChannelKind>(kind);
  return {};
}

std::string names(ChannelSet set) {
  std::string text;
  for (std::size_t kind = 0; kind < all_channel_traits.size(); ++kind)
    if (set.has(static_cast<ChannelKind>(kind)))
      text.append(text.empty() ? "" : ",").append(all_channel_traits[kind].name);
  return text;
}

}  // namespace plait
