#include "plugin/launcher/pmi_store.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "plugin/launcher/launcher_turn.h"

namespace plait::plugin {
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

// What is asked and answered. No memory is needed between a question and its answer, which the MPI library would take
// for that to its own next question.
struct Line {
  std::array<char, longest_line> bytes{};
  std::size_t length = 0;

  std::string_view text() const { return {bytes.data(), length}; }
  std::span<char> room() { return std::span(bytes).subspan(length); }
};

// Nothing follows the line: the launcher speaks only when it is asked.
Status receive(int descriptor, Line& line) {
  line.length = 0;
  while (!line.room().empty()) {
    const ssize_t got = read(descriptor, line.room().data(), line.room().size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read");
    if (got == 0) return {Code::unavailable, "pmi: the launcher has closed the connection"};
    line.length += static_cast<std::size_t>(got);
    if (!line.text().ends_with('\n')) continue;
    --line.length;
    return {};
  }
  return {Code::unavailable, "pmi: an answer without an end"};
}

// Of "cmd=get_result rc=0 value=1".
std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return word.substr(name.size() + 1);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return std::nullopt;
}

Status unexpected(const Line& line) { return {Code::unavailable, "pmi: '" + std::string(line.text()) + "'"}; }

// `line`: the question, and then the answer.
Status ask(int descriptor, Line& line, std::string_view answer) {
  if (!line.text().ends_with('\n')) return {Code::unavailable, "pmi: a question that is too long"};
  if (Status status = send(descriptor, line.text()); !status.ok()) return status;
  if (Status status = receive(descriptor, line); !status.ok()) return status;
  return value_of(line.text(), "cmd") == answer ? Status() : unexpected(line);
}

// "cmd=put kvsname=NAME key=KEY value=VALUE"; without an end where it has no room.
template <class... Parts>
Line question(const Parts&... parts) {
  Line line;
  for (const std::string_view part : {std::string_view(parts)..., std::string_view("\n")}) {
    const std::size_t copied = part.copy(line.room().data(), line.room().size());
    line.length += copied;
  }
  return line;
}

}  // namespace

Result<PmiStore> PmiStore::open(int descriptor) {
  Line line = question("cmd=get_my_kvsname");
  if (Status status = ask(descriptor, line, "my_kvsname"); !status.ok()) return status;
  const std::optional<std::string_view> name = value_of(line.text(), "kvsname");
  if (!name) return unexpected(line);
  return PmiStore(descriptor, std::string(*name));
}

Status PmiStore::put(std::string_view key, std::string_view value) const {
  Line line = question("cmd=put kvsname=", name_, " key=", key, " value=", value);
  if (Status status = ask(descriptor_, line, "put_result"); !status.ok()) return status;
  return value_of(line.text(), "rc") == "0" ? Status() : unexpected(line);
}

Result<std::string> PmiStore::get(std::string_view key) const {
  Line line = question("cmd=get kvsname=", name_, " key=", key);
  const LauncherTurn turn(name_, getpid());
  if (Status status = ask(descriptor_, line, "get_result"); !status.ok()) return status;
  const std::optional<std::string_view> value = value_of(line.text(), "value");
  if (value_of(line.text(), "rc") != "0" || !value) return Status(Code::unavailable, "pmi: no value");
  return std::string(*value);
}

}  // namespace plait::plugin
