// A machine file that is read has usable figures, and what is written of it is read again.
#include <cmath>

#include "plan/model/machine.h"
#include "tests/fuzz/fuzz.h"

using namespace plait;
using namespace plait::plan;

namespace {

bool usable(double figure) { return std::isfinite(figure) && figure >= 0; }

void check(const Machine& machine) {
  fuzz::require(!machine.levels.empty(), "a machine has levels");
  for (const LinkLevel& level : machine.levels) {
    for (const double figure : {level.latency, level.overhead, level.cpu_seconds_per_byte, level.port_seconds_per_byte,
                                level.port_seconds_per_message})
      fuzz::require(usable(figure), "a level's figures are finite and not negative");
  }
  for (const double figure : {machine.reduce_seconds_per_byte, machine.copy_seconds_per_byte,
                              machine.start_seconds_per_byte, machine.ranks_per_core})
    fuzz::require(usable(figure), "a machine's figures are finite and not negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<Machine> machine = parse_machine(fuzz::text_of(data, size));
  if (!machine.ok()) {
    fuzz::require(!machine.status().message().empty(), "a refusal says why");
    return 0;
  }
  check(*machine);
  fuzz::require(parse_machine(machine_json(*machine)).ok(), "what is written can be read");
  return 0;
}
