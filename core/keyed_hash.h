// BLAKE2s with a key (RFC 7693): what only who knows the key can compute of a message, and random bytes to make keys
// of. Written here, as a library such as libcrypto would come into every preloaded process, beside the program's own.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/status.h"

namespace plait {

using KeyedHash = std::array<std::byte, 32>;

// `key`: at most 32 bytes; none: a plain hash. Thread-safe; does not allocate.
KeyedHash keyed_hash(std::span<const std::byte> key, std::span<const std::byte> message);

// Takes as long wherever they differ, so that nobody finds a hash byte by byte.
bool same_hash(const KeyedHash& one, const KeyedHash& other);

// Of the kernel's generator; nobody can guess them. Fails (unavailable) where the kernel refuses.
Status fill_random(std::span<std::byte> bytes);

}  // namespace plait
