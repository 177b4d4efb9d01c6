// One channel more than there are, for the sources of a test that are compiled with this before all else: a link
// between some ranks of a node, with no memory to share.
#pragma once

#define PLAIT_MORE_CHANNEL_KINDS(LINE) LINE(fake, .crosses_nodes = false, .device_memory = true)
