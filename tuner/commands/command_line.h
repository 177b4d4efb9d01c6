// The options of a program or of its subcommands, as CLI11 understands them. CLI11's templates are compiled in
// command_line.cpp alone: in each file that includes them they take five seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plait::tuner {

// Refers to an option of a command line, which must outlive it.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option required();
  Option shows_default();                    // as the variable stands now
  Option separated_by(char separator);       // the parts of a list that is one word
  Option repeated();                         // one word at a time, as often as it is given
  Option within(double least, double most);  // else the command line is refused
  Option excludes(Option other);
  Option needs(Option other);

 private:
  CLI::Option* option_;
};

// Refers to the options of one (sub)command. The variables are written when the command line is read, and must outlive
// that.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(&app) {}

  // `names`: "--output", "-o,--output", or "file" for a word that stands by itself.
  Option option(const std::string& names, std::string& variable, const std::string& help);
  Option option(const std::string& names, int& variable, const std::string& help);
  Option option(const std::string& names, std::uint64_t& variable, const std::string& help);
  Option option(const std::string& names, double& variable, const std::string& help);
  Option option(const std::string& names, std::optional<std::string>& variable, const std::string& help);
  Option option(const std::string& names, std::optional<int>& variable, const std::string& help);
  Option option(const std::string& names, std::optional<double>& variable, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& variable, const std::string& help);
  Option option(const std::string& names, std::vector<double>& variable, const std::string& help);
  Option flag(const std::string& names, bool& variable, const std::string& help);

  CommandLine subcommand(const std::string& name, const std::string& help);
  void require_subcommand();  // exactly one
  bool was_given() const;     // this subcommand; known once the command line has been read

 private:
  CLI::App* app_;
};

}  // namespace plait::tuner
