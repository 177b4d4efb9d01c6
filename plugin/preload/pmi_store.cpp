#include "plugin/preload/pmi_store.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace plait::plugin::preload {
namespace {

constexpr std::size_t longest_line = 4096;

Status failed(const char* what) {
  return {Code::unavailable, std::string("pmi: ") + what + ": " + std::strerror(errno)};
}

Status send(int descriptor, std::string_view line) {
  while (!line.empty()) {
    const ssize_t sent = write(descriptor, line.data(), line.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return failed("write");
    line.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

// Nothing follows the line: the launcher speaks only when it is asked.
Result<std::string> receive(int descriptor) {
  std::string line;
  std::array<char, 1024> part{};
  while (line.size() < longest_line) {
    const ssize_t got = read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read");
    if (got == 0) return Status(Code::unavailable, "pmi: the launcher has closed the connection");
    line.append(part.data(), static_cast<std::size_t>(got));
    if (!line.ends_with('\n')) continue;
    line.pop_back();
    return line;
  }
  return Status(Code::unavailable, "pmi: an answer without an end");
}

// Of "cmd=get_result rc=0 value=1".
std::optional<std::string> value_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return std::string(word.substr(name.size() + 1));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return std::nullopt;
}

Result<std::string> ask(int descriptor, const std::string& question, std::string_view answer) {
  if (Status status = send(descriptor, "cmd=" + question + "\n"); !status.ok()) return status;
  Result<std::string> line = receive(descriptor);
  if (line.ok() && value_of(*line, "cmd") != answer)
    return Status(Code::unavailable, "pmi: '" + *line + "' is no " + std::string(answer));
  return line;
}

}  // namespace

Result<PmiStore> PmiStore::open(int descriptor) {
  const Result<std::string> line = ask(descriptor, "get_my_kvsname", "my_kvsname");
  if (!line.ok()) return line.status();
  std::optional<std::string> name = value_of(*line, "kvsname");
  if (!name) return Status(Code::unavailable, "pmi: '" + *line + "' names no job");
  return PmiStore(descriptor, std::move(*name));
}

Status PmiStore::put(std::string_view key, std::string_view value) const {
  const Result<std::string> line = ask(
      descriptor_, "put kvsname=" + name_ + " key=" + std::string(key) + " value=" + std::string(value), "put_result");
  if (!line.ok()) return line.status();
  return value_of(*line, "rc") == "0" ? Status() : Status(Code::unavailable, "pmi: '" + *line + "'");
}

Result<std::string> PmiStore::get(std::string_view key) const {
  const Result<std::string> line = ask(descriptor_, "get kvsname=" + name_ + " key=" + std::string(key), "get_result");
  if (!line.ok()) return line.status();
  std::optional<std::string> value = value_of(*line, "value");
  if (value_of(*line, "rc") != "0" || !value) return Status(Code::unavailable, "pmi: '" + *line + "'");
  return std::move(*value);
}

}  // namespace plait::plugin::preload
