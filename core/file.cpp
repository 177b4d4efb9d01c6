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

#include "core/units.h"

namespace plait {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  // What was written may fail to reach the disk only here.
  bool close_now() { return close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

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

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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

}  // namespace plait
