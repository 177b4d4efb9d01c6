#include "plan/algorithm/program.h"

#include <algorithm>
#include <optional>

namespace plait::plan {

namespace {

std::optional<Instruct> instruct_named(std::string_view wanted) {
  const auto found = std::find(instruct_names.begin(), instruct_names.end(), wanted);
  if (found == instruct_names.end()) return std::nullopt;
  return static_cast<Instruct>(found - instruct_names.begin());
}

Status bad(std::string_view word, const std::string& expected) {
  return {Code::invalid, "program: '" + std::string(word) + "': expected " + expected};
}

// "AR.12(ring)"
Result<Instruction> parse_instruction(std::string_view word) {
  const auto what = instruct_named(word.substr(0, 2));
  if (!what || word.size() < 4 || word[2] != '.') return bad(word, "AR, RS, AG, RD, BC, GA or SC, a dot and levels");
  const auto open = word.find('(');
  const std::string_view levels = word.substr(3, open == word.npos ? word.npos : open - 3);
  if (levels.empty()) return bad(word, "levels 1 to 8 after the dot");
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] < '1' || levels[i] > '0' + most_levels || (i > 0 && levels[i] != levels[i - 1] + 1))
      return bad(word, "consecutive levels between 1 and 8");
  Instruction instruction{*what, levels.front() - '1', levels.back() - '1', default_algorithm(*what), false};
  if (open == word.npos) return instruction;
  if (word.back() != ')') return bad(word, "a closing parenthesis");
  const Algorithm* algorithm = algorithm_named(word.substr(open + 1, word.size() - open - 2));
  if (algorithm == nullptr || !algorithm->fits(instruction.what, 2))
    return bad(word, "an algorithm that does this instruction");
  instruction.algorithm = algorithm;
  instruction.algorithm_given = true;
  return instruction;
}

std::string text_of(const Instruction& instruction) {
  std::string result = std::string(name(instruction.what)) + '.';
  for (int level = instruction.first; level <= instruction.last; ++level) result += static_cast<char>('1' + level);
  return result;
}

}  // namespace

Result<Program> parse_program(std::string_view text) {
  Program program;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) {
      Result<Instruction> instruction = parse_instruction(text.substr(0, end));
      if (!instruction.ok()) return instruction.status();
      program.instructions.push_back(*instruction);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (program.instructions.empty()) return Status(Code::invalid, "program: empty; expected such as 'RS.2 AR.1 AG.2'");
  return program;
}

std::string text(const Program& program) {
  std::string result;
  for (const Instruction& instruction : program.instructions)
    result += (result.empty() ? "" : " ") + text_of(instruction) + '(' + std::string(instruction.algorithm->name) + ')';
  return result;
}

std::string text_without_algorithms(const Program& program) {
  std::string result;
  for (const Instruction& instruction : program.instructions)
    result += (result.empty() ? "" : " ") + text_of(instruction);
  return result;
}

}  // namespace plait::plan
