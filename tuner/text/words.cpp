#include "tuner/text/words.h"

namespace plait::tuner {

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> words;
  for (std::size_t end; (end = list.find(separator)) != list.npos; list.remove_prefix(end + 1)) {
    words.emplace_back(list.substr(0, end));
  }
  words.emplace_back(list);
  return words;
}

std::string listed(const std::vector<int>& numbers) {
  std::string result;
  for (const int number : numbers) result += (result.empty() ? "" : " ") + std::to_string(number);
  return result;
}

std::string text(const std::vector<int>& numbers) { return '[' + listed(numbers) + ']'; }

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return grouped(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

}  // namespace plait::tuner
