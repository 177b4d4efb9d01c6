#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/descriptor.h"
#include "core/units.h"

namespace plait {
namespace {

Status failed(Code code, const std::string& path) { return {code, "\"" + path + "\": " + std::strerror(errno)}; }

bool write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

// Where a link points; the path itself where there is nothing yet.
std::string resolved(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return realpath(path.c_str(), real.data()) != nullptr ? real.data() : path;
}

mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

Result<std::string> read_whole(const Descriptor& file, const std::string& path, std::size_t most_bytes) {
  struct stat about {};
  if (file.number() < 0 || fstat(file.number(), &about) != 0) return failed(Code::invalid, path);
  if (!S_ISREG(about.st_mode)) return {Code::invalid, "\"" + path + "\": expected a regular file"};
  if (static_cast<std::size_t>(about.st_size) > most_bytes)
    return {Code::invalid, "\"" + path + "\": larger than " + format_bytes(most_bytes)};
  // One byte more than there should be: the end is seen by a read of nothing.
  std::string text(static_cast<std::size_t>(about.st_size) + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(file.number(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(Code::invalid, path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled == text.size()) return {Code::invalid, "\"" + path + "\": grew while it was read"};
  text.resize(filled);
  return text;
}

// Each folder of an absolute path that is missing, for the user alone (XDG base directory specification).
void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    mkdir(path.substr(0, end).c_str(), 0700);
  mkdir(path.c_str(), 0700);
}

// A new file in the folder, beside the one of this name.
Descriptor open_beside(int folder, const std::string& name, std::string& beside) {
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    beside = name + "." + std::to_string(getpid()) + "." + std::to_string(attempt);
    Descriptor file(openat(folder, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.number() >= 0 || errno != EEXIST) return file;
  }
  return Descriptor(-1);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
  return read_whole(Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), path, most_bytes);
}

Status replace_file(const std::string& path, const std::string& text) {
  const std::string target = resolved(path);
  struct stat about {};
  const bool exists = stat(target.c_str(), &about) == 0;
  if (exists && !S_ISREG(about.st_mode)) return {Code::invalid, "\"" + path + "\": expected a regular file"};
  std::string beside = target + ".XXXXXX";
  Descriptor file(mkostemp(beside.data(), O_CLOEXEC));
  if (file.number() < 0) return failed(Code::unavailable, path);
  const bool written = write_all(file.number(), text) &&
                       fchmod(file.number(), exists ? about.st_mode & 07777 : usual_mode()) == 0 &&
                       fsync(file.number()) == 0;
  if (written && file.close_now() && rename(beside.c_str(), target.c_str()) == 0) return {};
  const Status status = failed(Code::unavailable, path);
  unlink(beside.c_str());
  return status;
}

// ---- A folder of the user's own ----

Result<OwnFolder> OwnFolder::open(const std::string& path, Missing missing) {
  if (missing == Missing::is_made) make_folders(path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ENOENT || errno == EACCES) return failed(Code::unavailable, path);
    return {Code::invalid, "\"" + path + "\": expected a folder that is no symbolic link"};
  }
  OwnFolder folder(descriptor, path);
  struct stat about {};
  if (fstat(descriptor, &about) != 0) return failed(Code::unavailable, path);
  if (about.st_uid != geteuid())
    return {Code::invalid, "\"" + path + "\": expected a folder of user " + std::to_string(geteuid()) +
                               ", found one of " + std::to_string(about.st_uid)};
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return {Code::invalid, "\"" + path + "\": expected a folder that only its owner may write to"};
  return folder;
}

OwnFolder::OwnFolder(OwnFolder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

OwnFolder& OwnFolder::operator=(OwnFolder&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

OwnFolder::~OwnFolder() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<std::string> OwnFolder::read(const std::string& name, std::size_t most_bytes) const {
  const Descriptor file(openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  return read_whole(file, path_of(name), most_bytes);
}

Status OwnFolder::replace(const std::string& name, const std::string& text) const {
  std::string beside;
  Descriptor file = open_beside(descriptor_, name, beside);
  if (file.number() < 0) return failed(Code::unavailable, path_of(name));
  const bool written = write_all(file.number(), text) && fsync(file.number()) == 0;
  if (written && file.close_now() && renameat(descriptor_, beside.c_str(), descriptor_, name.c_str()) == 0) return {};
  const Status status = failed(Code::unavailable, path_of(name));
  unlinkat(descriptor_, beside.c_str(), 0);
  return status;
}

}  // namespace plait
