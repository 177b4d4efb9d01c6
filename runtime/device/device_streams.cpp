#include "runtime/device/device_streams.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "core/immortal.h"

namespace plait::runtime {
namespace {

struct IdleStreams {
  std::mutex guard;
  std::vector<std::unique_ptr<DeviceStreams>> all;
};
// Never destroyed: the driver may be gone before this library is.
IdleStreams& idle_streams() {
  static Immortal<IdleStreams> made;
  return *made;
}

Status open(const DeviceDriver& driver, const tl::DeviceMemory& memory, DeviceStreams::Direction& direction) {
  Result<std::unique_ptr<tl::DeviceStream>> made = driver.make_stream(memory);
  if (!made.ok()) return made.status();
  direction.stream = std::move(*made);
  for (auto& event : direction.events) {
    Result<std::unique_ptr<tl::DeviceEvent>> made_event = driver.make_event(memory);
    if (!made_event.ok()) return made_event.status();
    event = std::move(*made_event);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DeviceStreams>> borrow_streams(const DeviceDriver& driver, const tl::DeviceMemory& memory) {
  {
    const std::scoped_lock lock(idle_streams().guard);
    auto& all = idle_streams().all;
    const auto same = std::ranges::find_if(
        all, [&](const auto& one) { return one->driver == &driver && one->context == memory.context; });
    if (same != all.end()) {
      std::unique_ptr<DeviceStreams> found = std::move(*same);
      *same = std::move(all.back());
      all.pop_back();
      return found;
    }
  }
  auto made = std::make_unique<DeviceStreams>();
  made->driver = &driver;
  made->context = memory.context;
  Status status = open(driver, memory, made->in);
  if (status.ok()) status = open(driver, memory, made->out);
  if (!status.ok()) return status;
  return made;
}

void give_back(std::unique_ptr<DeviceStreams> streams) noexcept {
  try {
    const std::scoped_lock lock(idle_streams().guard);
    idle_streams().all.push_back(std::move(streams));
  } catch (const std::exception&) {  // they end
  }
}

}  // namespace plait::runtime
