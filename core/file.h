// Small files, read and written whole. All calls block on the disk; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "core/status.h"

namespace plait {

// The content of a regular file of at most `most_bytes`; a larger one is refused by its size, before it is read, and a
// pipe or a device before it could block. Fails (invalid) with the path and the reason.
Result<std::string> read_file(const std::string& path, std::size_t most_bytes);

// Replaces the file as a whole: the text goes to a new file beside it, which then takes its name, so that a reader
// finds the old text or the new one. A symbolic link stays one. Fails (unavailable) with the path and the reason, and
// leaves nothing behind; (invalid) where the path is something else than a regular file.
Status replace_file(const std::string& path, const std::string& text);

// A folder that only its user writes to, such as a cache, and the small files in it by their names. What others may
// have put in the way is not followed: neither the folder nor a file in it is a symbolic link, and the folder is the
// user's own and closed to others' writing. Links above the folder are the user's business. Blocks on the disk.
class OwnFolder {
 public:
  enum class Missing { fails, is_made };
  // Fails (unavailable) where there is no such folder, or it cannot be made (for its user alone, as those above it that
  // are missing); (invalid) where it is refused for what it is.
  static Result<OwnFolder> open(const std::string& path, Missing missing);

  OwnFolder(OwnFolder&& other) noexcept;
  OwnFolder& operator=(OwnFolder&& other) noexcept;
  ~OwnFolder();

  // As the functions above, of a file that is no link. A link that stands in its place is replaced.
  Result<std::string> read(const std::string& name, std::size_t most_bytes) const;
  Status replace(const std::string& name, const std::string& text) const;

 private:
  OwnFolder(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  int descriptor_ = -1;
  std::string path_;
};

}  // namespace plait
