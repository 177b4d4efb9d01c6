#include "runtime/job/schedule_setting.h"

#include <algorithm>
#include <utility>

#include "core/file.h"
#include "core/text_hash.h"

namespace plait::runtime {
namespace {

constexpr std::size_t most_bytes = std::size_t{16} << 20;

OwnSchedule refused_schedule(const std::string& reason) {
  return {nullptr, false, OwnSchedule::refused, "PLAIT_SCHEDULE is not used: " + reason};
}

}  // namespace

OwnSchedule read_own_schedule(const Config& config) {
  if (config.schedule.empty()) return {};
  if (!config.overlap.empty()) return refused_schedule("PLAIT_OVERLAP is set as well");
  if (config.schedule == "auto") return {nullptr, true, hash_text(config.schedule), {}};
  const Result<std::string> text = read_file(config.schedule, most_bytes);
  if (!text.ok()) return refused_schedule(text.status().message());
  Result<plan::step::StepSchedule> schedule = plan::step::parse_schedule(*text);
  if (!schedule.ok()) return refused_schedule("\"" + config.schedule + "\": " + schedule.status().message());
  return {std::make_shared<const plan::step::StepSchedule>(std::move(*schedule)),
          false,
          std::max(hash_text(*text), OwnSchedule::refused + 1),
          {}};
}

}  // namespace plait::runtime
