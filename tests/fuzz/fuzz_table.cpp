// A tuning table that is read comes back from what is written of it, and its look-ups stay within its ranges.
#include "plan/choose/table.h"
#include "tests/fuzz/fuzz.h"
#include "topo/shape.h"

using namespace plait;
using namespace plait::topo;
using namespace plait::plan;

namespace {

void check_shape(const TunedShape& shape) {
  fuzz::require(usual_shape(shape.shape).ok(), "a shape is understood");
  for (const TunedCollective& tuned : shape.collectives) {
    std::size_t end = 0;
    for (const TunedRange& range : tuned.ranges) {
      fuzz::require(range.from >= end && range.from < range.to, "ranges ascend");
      end = range.to;
    }
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, end}) {
      const TunedRange* found = tuned_range(shape, {.collective = tuned.collective, .count = bytes}, 1);
      fuzz::require(found == nullptr || (found->from <= bytes && bytes < found->to), "a look-up finds its range");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const Result<std::string> usual = usual_shape(fuzz::text_of(data, size)); usual.ok())
    fuzz::require(*usual_shape(*usual) == *usual, "a shape's usual form is its own");
  const Result<TuningTable> table = parse_table(fuzz::text_of(data, size));
  if (!table.ok()) {
    fuzz::require(!table.status().message().empty(), "a refusal says why");
    return 0;
  }
  for (const TunedShape& shape : table->shapes) check_shape(shape);
  const std::string written = table_json(*table);
  const Result<TuningTable> again = parse_table(written);
  fuzz::require(again.ok() && table_json(*again) == written, "what is written is that table");
  return 0;
}
