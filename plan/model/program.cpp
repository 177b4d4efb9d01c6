#include "plan/model/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

namespace plait::plan {

namespace {

constexpr std::array<std::string_view, all_instructs> instruct_names = {"AR", "RS", "AG", "RD", "BC", "GA", "SC"};
constexpr std::array<std::string_view, algorithm_count> algorithm_names = {
    "ring", "rd", "rh", "direct", "diss", "tree", "binomial", "4nomial", "8nomial", "chain", "flat", "shared"};

std::optional<std::size_t> index_of(std::span<const std::string_view> names, std::string_view wanted) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

Status bad(std::string_view word, const std::string& expected) {
  return {Code::invalid, "program: '" + std::string(word) + "': expected " + expected};
}

// "AR.12(ring)"
Result<Instruction> parse_instruction(std::string_view word) {
  const auto what = index_of(instruct_names, word.substr(0, 2));
  if (!what || word.size() < 4 || word[2] != '.') return bad(word, "AR, RS, AG, RD, BC, GA or SC, a dot and levels");
  const auto open = word.find('(');
  const std::string_view levels = word.substr(3, open == word.npos ? word.npos : open - 3);
  if (levels.empty()) return bad(word, "levels 1 to 8 after the dot");
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] < '1' || levels[i] > '0' + most_levels || (i > 0 && levels[i] != levels[i - 1] + 1))
      return bad(word, "consecutive levels between 1 and 8");
  Instruction instruction{static_cast<Instruct>(*what), levels.front() - '1', levels.back() - '1',
                          default_algorithm(static_cast<Instruct>(*what)), false};
  if (open == word.npos) return instruction;
  if (word.back() != ')') return bad(word, "a closing parenthesis");
  const auto algorithm = index_of(algorithm_names, word.substr(open + 1, word.size() - open - 2));
  if (!algorithm || !fits(instruction.what, static_cast<Algorithm>(*algorithm), 2))
    return bad(word, "an algorithm that does this instruction");
  instruction.algorithm = static_cast<Algorithm>(*algorithm);
  instruction.algorithm_given = true;
  return instruction;
}

std::string text_of(const Instruction& instruction) {
  std::string result = std::string(name(instruction.what)) + '.';
  for (int level = instruction.first; level <= instruction.last; ++level) result += static_cast<char>('1' + level);
  return result;
}

}  // namespace

std::string_view name(Instruct what) { return instruct_names[static_cast<std::size_t>(what)]; }
std::string_view name(Algorithm algorithm) { return algorithm_names[static_cast<std::size_t>(algorithm)]; }

Algorithm default_algorithm(Instruct what) {
  return what <= Instruct::all_gather ? Algorithm::ring : Algorithm::binomial;
}

bool fits(Instruct what, Algorithm algorithm, int members) {
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(members));
  switch (algorithm) {
    case Algorithm::ring:
      return what <= Instruct::all_gather;
    case Algorithm::recursive_doubling:
      return what == Instruct::all_reduce || (what == Instruct::all_gather && power_of_two);
    case Algorithm::recursive_halving:
      return (what == Instruct::all_reduce || what == Instruct::reduce_scatter) && power_of_two;
    case Algorithm::direct:
      return what != Instruct::reduce && what != Instruct::broadcast;
    case Algorithm::dissemination:
      return what == Instruct::all_gather;
    case Algorithm::tree:
      return what == Instruct::all_reduce;
    case Algorithm::binomial:
      return what >= Instruct::reduce;
    case Algorithm::shared:
      return true;
    default:
      return what == Instruct::reduce || what == Instruct::broadcast;
  }
}

bool scatters(Instruct what, Algorithm algorithm) {
  if (what == Instruct::all_reduce)
    return algorithm != Algorithm::recursive_doubling && algorithm != Algorithm::tree && algorithm != Algorithm::shared;
  return what == Instruct::reduce_scatter || what == Instruct::scatter;
}

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
    result += (result.empty() ? "" : " ") + text_of(instruction) + '(' + std::string(name(instruction.algorithm)) + ')';
  return result;
}

std::string text_without_algorithms(const Program& program) {
  std::string result;
  for (const Instruction& instruction : program.instructions)
    result += (result.empty() ? "" : " ") + text_of(instruction);
  return result;
}

}  // namespace plait::plan
