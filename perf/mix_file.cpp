#include "perf/mix_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "core/units.h"

namespace plait::perf {
namespace {

constexpr int most_calls = 10000000;
constexpr std::size_t most_kinds = 1000;

// The next word of a line, which loses it; empty at its end.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view blanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::size_t end = std::min(line.find_first_of(blanks), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

template <typename Number>
bool parse_number(std::string_view word, Number& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

Status refuse(std::string_view word, const char* expected) {
  return {Code::invalid, "\"" + std::string(word) + "\": expected " + expected};
}

// "10857 bcast 112", "2128 barrier".
Status parse_calls(std::string_view line, MixCalls& calls) {
  const std::string_view count = take_word(line), collective = take_word(line), bytes = take_word(line);
  if (!parse_number(count, calls.calls) || calls.calls < 1 || calls.calls > most_calls) {
    return refuse(count, "name, seed, or a number of calls from 1 to 10000000");
  }
  const auto known = collective_named(collective);
  calls.alltoallv = collective == "alltoallv";
  if (!known) return refuse(collective, "a collective, such as allreduce, or alltoallv");
  calls.collective = calls.alltoallv ? Collective::alltoall : *known;
  if (const std::string_view rest = take_word(line); !rest.empty()) return refuse(rest, "the end of the line");
  if (known == Collective::barrier) return bytes.empty() ? Status() : refuse(bytes, "no size for barrier");
  const auto size = parse_bytes(bytes);
  if (!size.ok()) return size.status();
  if (*size == 0) return refuse(bytes, "at least one byte");
  calls.bytes = *size;
  return {};
}

Status parse_line(std::string_view line, Mix& mix) {
  std::string_view rest = line;
  const std::string_view first = take_word(rest);
  if (first == "name") {
    mix.name = trimmed(rest);
    return mix.name.empty() ? refuse(line, "a name") : Status();
  }
  if (first == "seed") {
    const std::string_view seed = trimmed(rest);
    return parse_number(seed, mix.seed) ? Status() : refuse(seed, "a whole number");
  }
  MixCalls calls;
  if (Status parsed = parse_calls(line, calls); !parsed.ok()) return parsed;
  mix.kinds.push_back(calls);
  return {};
}

// splitmix64: the standard library's shuffles differ between implementations.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  // In [0, below); of so few numbers the remainder's bias does not matter.
  std::size_t next(std::size_t below) {
    std::uint64_t value = state_ += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return static_cast<std::size_t>((value ^ value >> 31) % below);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::string MixCalls::label() const {
  if (alltoallv) return "alltoallv of " + format_bytes(bytes);
  const std::string text(plait::plan::name(collective));
  return collective == Collective::barrier ? text : text + " of " + format_bytes(bytes);
}

Result<Mix> parse_mix(std::string_view text) {
  Mix mix;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, std::min(text.substr(0, end).find('#'), end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).empty()) continue;
    if (const Status parsed = parse_line(line, mix); !parsed.ok()) {
      return {Code::invalid, "line " + std::to_string(number) + ": " + parsed.message()};
    }
  }
  if (mix.kinds.empty()) return {Code::invalid, "there is no call in it: expected lines such as \"100 allreduce 8\""};
  if (mix.kinds.size() > most_kinds) return {Code::invalid, "expected at most 1000 lines of calls"};
  return mix;
}

Mix shortened(Mix mix, int divisor) {
  for (MixCalls& kind : mix.kinds) kind.calls = std::max(1, kind.calls / divisor);
  return mix;
}

std::vector<std::uint16_t> call_order(const Mix& mix) {
  std::vector<std::uint16_t> order;
  for (std::size_t kind = 0; kind < mix.kinds.size(); ++kind) {
    order.insert(order.end(), static_cast<std::size_t>(mix.kinds[kind].calls), static_cast<std::uint16_t>(kind));
  }
  Numbers numbers(mix.seed);
  for (std::size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[numbers.next(left)]);
  return order;
}

}  // namespace plait::perf
