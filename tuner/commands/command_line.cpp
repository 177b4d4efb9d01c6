#include "tuner/commands/command_line.h"

#include <CLI/CLI.hpp>

namespace plait::tuner {

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::shows_default() {
  option_->capture_default_str();
  return *this;
}

Option Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option Option::repeated() {
  option_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option Option::within(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) {
  option_->needs(other.option_);
  return *this;
}

Option CommandLine::option(const std::string& names, std::string& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, int& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, std::uint64_t& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, double& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, std::optional<std::string>& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, std::optional<int>& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, std::optional<double>& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, std::vector<std::string>& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::option(const std::string& names, std::vector<double>& variable, const std::string& help) {
  return Option(*app_->add_option(names, variable, help));
}
Option CommandLine::flag(const std::string& names, bool& variable, const std::string& help) {
  return Option(*app_->add_flag(names, variable, help));
}

CommandLine CommandLine::subcommand(const std::string& name, const std::string& help) {
  return CommandLine(*app_->add_subcommand(name, help));
}
void CommandLine::require_subcommand() { app_->require_subcommand(1); }
bool CommandLine::was_given() const { return app_->parsed(); }

}  // namespace plait::tuner
