// The environment: any entries, one a line.
#include "core/config.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string_view> environment;
  for (std::string_view rest = fuzz::text_of(data, size); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    environment.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const LoadedConfig loaded = load_config(environment);
  for (const std::string& warning : loaded.warnings) fuzz::require(!warning.empty(), "a warning says why");
  fuzz::require(loaded.config.setup_calls >= 0, "a count is not negative");
  fuzz::require(effective_values(environment).size() == knobs().size(), "every variable has a value");
  return 0;
}
