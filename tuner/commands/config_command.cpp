// plait config: every PLAIT_* variable with its effective value and where that comes from.
#include <unistd.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "tuner/commands/command.h"

namespace plait::tuner {
namespace {

constexpr bool has_cuda_kernels = PLAIT_HAS_CUDA_KERNELS;

std::vector<std::string_view> process_environment() {
  std::vector<std::string_view> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

void print_table(const std::vector<EffectiveValue>& values) {
  std::size_t name_width = 0, value_width = 0;
  for (const auto& value : values) {
    name_width = std::max(name_width, value.name.size());
    value_width = std::max(value_width, value.value.size());
  }
  for (const auto& value : values) {
    std::cout << std::left << std::setw(static_cast<int>(name_width)) << value.name << "  "
              << std::setw(static_cast<int>(value_width)) << value.value << "  " << value.origin << '\n';
  }
  std::cout << "\nkernels for derived types on CUDA devices: "
            << (has_cuda_kernels ? "built in\n" : "none, as nvcc was not found when Plait was built (docs/gpu.md)\n");
}

nlohmann::ordered_json to_json(const std::vector<EffectiveValue>& values, const std::vector<std::string>& warnings) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& value : values) {
    nlohmann::ordered_json entry = {{"name", value.name}, {"value", value.value}, {"origin", value.origin}};
    const auto all = knobs();
    const auto knob = std::find_if(all.begin(), all.end(), [&](const Knob& k) { return k.name == value.name; });
    if (knob != all.end()) {
      entry["type"] = knob->type;
      entry["default"] = knob->default_value;
      entry["help"] = knob->help;
    }
    list.push_back(std::move(entry));
  }
  return {{"variables", std::move(list)}, {"warnings", warnings}, {"cuda_kernels", has_cuda_kernels}};
}

class ConfigCommand : public Command {
 public:
  std::string_view name() const override { return "config"; }
  std::string_view summary() const override { return "print the effective PLAIT_* settings and where they come from"; }

  void add_options(CommandLine line) override { line.flag("--json", json_, "print JSON"); }

  Result<int> run() override {
    const auto environment = process_environment();
    const auto values = effective_values(environment);
    const auto warnings = load_config(environment).warnings;
    if (json_) {
      std::cout << to_json(values, warnings).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
      print_table(values);
    }
    for (const auto& warning : warnings) warn(warning);
    return 0;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> config_command() { return std::make_unique<ConfigCommand>(); }

}  // namespace plait::tuner
