// Two channels as one: a short message costs least over one, a long one over the other.
#pragma once

#include <cstdint>
#include <memory>

#include "tl/channel.h"
#include "tl/layer.h"

namespace plait::tl {

// Messages of at most `short_bytes` go over `short_messages`, longer ones over `long_messages`. Both sides know a
// message's length, so that they agree. To all others it is the channel of the long messages, whose kind it has: a
// schedule does not know how long its messages will be.
std::unique_ptr<Channel> make_split_channel(std::unique_ptr<Channel> short_messages,
                                            std::unique_ptr<Channel> long_messages, std::uint64_t short_bytes);

}  // namespace plait::tl
