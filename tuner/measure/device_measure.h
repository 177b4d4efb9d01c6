// What GPUs of a job's ranks copy, for `plait probe` (docs/probe.md): from and to the processor's memory, and into each
// other's memory, which is mapped (CUDA IPC).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "tl/device_driver.h"
#include "topo/hierarchy.h"
#include "tuner/measure/probe_samples.h"
#include "tuner/measure/session.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// A rank's GPU, for as long as it measures.
class ProbedDevice {
 public:
  // Collective: the ranks of a node take its GPUs by turns. `unavailable` on all ranks, with the first one's reason,
  // where some have none.
  static Result<std::unique_ptr<ProbedDevice>> open(MpiSession& session, const std::string& driver_library);
  ~ProbedDevice();
  ProbedDevice(const ProbedDevice&) = delete;
  ProbedDevice& operator=(const ProbedDevice&) = delete;

  // Collective. Adds a curve to each link within a node, where memory can be mapped across it, and those of the first
  // rank's copies. Precondition: `samples.links` are of the hierarchy's levels.
  Status measure(MpiSession& session, const Hierarchy& hierarchy, ProbeSamples& samples);

 private:
  ProbedDevice() = default;
  Status reserve();
  // Seconds of one copy; by size.
  Result<ProbeCurve> curve(std::byte* to, const std::byte* from);
  Result<double> seconds(std::byte* to, const std::byte* from, std::size_t bytes);

  std::unique_ptr<tl::DeviceDriver> driver_;
  tl::DeviceMemory memory_;
  std::unique_ptr<tl::DeviceStream> stream_;
  std::unique_ptr<tl::DeviceEvent> event_;
  std::byte *there_ = nullptr, *here_ = nullptr;  // the device's, and pinned
  bool pinned_ = false;
};

// The links by which messages go between what the levels of `wanted` part, of those that were measured for the levels
// of `measured`, which has the same ranks.
std::vector<LinkSamples> links_between(const Hierarchy& wanted, const Hierarchy& measured,
                                       const std::vector<LinkSamples>& links);

}  // namespace plait::tuner
