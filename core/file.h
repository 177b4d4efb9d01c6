// Small files, read and written whole. Both calls block on the disk; thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "core/status.h"

namespace plait {

// The content of a regular file of at most `most_bytes`; a larger one is refused by its size, before it is read, and a
// pipe or a device before it could block. Fails (invalid) with the path and the reason.
Result<std::string> read_file(const std::string& path, std::size_t most_bytes);

// Replaces the file as a whole: the text goes to a new file beside it, which then takes its name, so that a reader
// finds the old text or the new one. A symbolic link stays one. Fails (unavailable) with the path and the reason, and
// leaves nothing behind; (invalid) where the path is something else than a regular file.
Status replace_file(const std::string& path, const std::string& text);

}  // namespace plait
