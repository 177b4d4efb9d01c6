#include "tuner/measure/device_measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tl/cuda/cuda_devices.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/probe_measure.h"

namespace plait::tuner {
namespace {

constexpr std::array<std::size_t, 6> copy_sizes = {
    8, std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{8} << 20, std::size_t{64} << 20};
constexpr int copies_a_point = 5;
constexpr double longest_copy_s = 0.05;
constexpr std::size_t probe_page_bytes = 4096;

double quartile(const std::vector<double>& sorted, std::size_t number) { return sorted[number * sorted.size() / 4]; }

struct Offered {
  tl::DeviceHandle handle{};
  std::uint64_t offset = 0, good = 0;
};

// The two ranks that a level parts first; -1: it parts none.
std::pair<int, int> first_pair(const Hierarchy& hierarchy, std::size_t index) {
  const std::vector<int> first = hierarchy.levels()[index].group_first;
  const std::vector<int> parents =
      index == 0 ? std::vector<int>{0} : std::vector<int>(hierarchy.levels()[index - 1].group_first);
  for (std::size_t group = 0; group + 1 < first.size(); ++group)
    if (std::ranges::find(parents, first[group + 1]) == parents.end())
      return {hierarchy.rank_at(first[group]), hierarchy.rank_at(first[group + 1])};
  return {-1, -1};
}

int place_on_node(MpiSession& session) {
  const std::vector<Location> locations = gather_locations(session);
  const auto own = static_cast<std::size_t>(session.rank());
  return static_cast<int>(std::count_if(locations.begin(), locations.begin() + session.rank(),
                                        [&](const Location& one) { return one.host == locations[own].host; }));
}

// The first rank's words that has some; on all ranks.
std::string first_said(MpiSession& session, const std::string& mine) {
  std::array<char, 160> text{};
  std::copy_n(mine.begin(), std::min(mine.size(), text.size() - 1), text.begin());
  const std::vector<std::byte> all = session.gather_bytes(std::as_bytes(std::span(text)));
  for (std::size_t at = 0; at < all.size(); at += text.size())
    if (const auto* one = reinterpret_cast<const char*>(all.data() + at); one[0] != '\0')
      return std::string(one) + " (rank " + std::to_string(at / text.size()) + ")";
  return {};
}

// The outermost level that parts two ranks.
std::size_t level_between(const Hierarchy& hierarchy, int one, int other) {
  const auto group_of = [&](std::size_t level, int rank) {
    const auto& first = hierarchy.levels()[level].group_first;
    return std::ranges::upper_bound(first, hierarchy.vrank_of(rank)) - first.begin();
  };
  std::size_t level = 0;
  while (level + 1 < hierarchy.levels().size() && group_of(level, one) == group_of(level, other)) ++level;
  return level;
}

}  // namespace

std::vector<LinkSamples> links_between(const Hierarchy& wanted, const Hierarchy& measured,
                                       const std::vector<LinkSamples>& links) {
  std::vector<LinkSamples> found;
  for (std::size_t index = 0; index < wanted.levels().size(); ++index) {
    const auto [one, other] = first_pair(wanted, index);
    found.push_back(links[level_between(measured, one, other)]);
    found.back().level = name(wanted.levels()[index].kind);
  }
  return found;
}

Result<std::unique_ptr<ProbedDevice>> ProbedDevice::open(MpiSession& session, const std::string& driver_library) {
  std::unique_ptr<ProbedDevice> made(new ProbedDevice);
  Result<tl::OpenedDevice> opened = tl::open_cuda_device(driver_library, place_on_node(session));
  Status status = opened.status();
  if (opened.ok()) {
    made->driver_ = std::move(opened->driver);
    made->memory_ = opened->memory;
    status = made->reserve();
  }
  if (std::string why = first_said(session, status.message()); !why.empty()) return Status(Code::unavailable, why);
  return made;
}

ProbedDevice::~ProbedDevice() {
  if (stream_ != nullptr) stream_->finish();
  if (there_ != nullptr) driver_->release(there_, memory_);
  if (pinned_) driver_->unpin(here_);
  std::free(here_);
}

Status ProbedDevice::reserve() {
  constexpr std::size_t bytes = copy_sizes.back();
  const Result<std::byte*> there = driver_->allocate(memory_, bytes);
  if (!there.ok()) return there.status();
  there_ = *there;
  memory_ = driver_->memory_at(there_);
  here_ = static_cast<std::byte*>(std::aligned_alloc(probe_page_bytes, bytes));
  if (here_ == nullptr) return {Code::unavailable, "no memory for copies"};
  std::memset(here_, 1, bytes);
  if (Status status = driver_->pin(here_, bytes); !status.ok()) return status;
  pinned_ = true;
  Result<std::unique_ptr<tl::DeviceStream>> stream = driver_->make_stream(memory_);
  if (!stream.ok()) return stream.status();
  stream_ = std::move(*stream);
  Result<std::unique_ptr<tl::DeviceEvent>> event = driver_->make_event(memory_);
  if (event.ok()) event_ = std::move(*event);
  return event.status();
}

Result<double> ProbedDevice::seconds(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  Status status = stream_->copy(to, from, bytes);
  if (status.ok()) status = stream_->record(*event_);
  while (status.ok()) {
    const Result<bool> passed = event_->passed();
    status = passed.status();
    if (passed.ok() && *passed) break;
  }
  if (!status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<ProbeCurve> ProbedDevice::curve(std::byte* to, const std::byte* from) {
  ProbeCurve found;
  for (const std::size_t bytes : copy_sizes) {
    std::vector<double> times;
    if (const Result<double> first = seconds(to, from, bytes); !first.ok()) return first.status();
    for (int copy = 0; copy < copies_a_point; ++copy) {
      const Result<double> one = seconds(to, from, bytes);
      if (!one.ok()) return one.status();
      times.push_back(*one);
    }
    std::ranges::sort(times);
    // A copy engine's time is not the processor's: what makes one longer is that nobody looked.
    found.push_back({bytes, times.front(), (quartile(times, 3) - quartile(times, 1)) / times[times.size() / 2]});
    if (times.front() > longest_copy_s) break;
  }
  return found;
}

// Of each pair the first one stores into the second one's memory. What cannot be mapped has no curve.
Status ProbedDevice::measure(MpiSession& session, const Hierarchy& hierarchy, ProbeSamples& samples) {
  const bool first_of_all = session.rank() == hierarchy.rank_at(0);
  Status failed;
  const auto measured = [&](bool mine, std::byte* to, const std::byte* from) {
    ProbeCurve own;
    if (mine) {
      Result<ProbeCurve> one = curve(to, from);
      if (one.ok()) own = std::move(*one);
      if (failed.ok()) failed = one.status();
    }
    return known_to_all(session, own, copy_sizes.size());
  };
  samples.to_device = measured(first_of_all, there_, here_);
  samples.from_device = measured(first_of_all, here_, there_);
  Offered mine;
  if (const Result<tl::DeviceHandle> handle = driver_->share(memory_); handle.ok())
    mine = {.handle = *handle, .offset = reinterpret_cast<std::uintptr_t>(there_) - memory_.begin, .good = 1};
  const std::vector<std::byte> offered = session.gather_bytes(std::as_bytes(std::span(&mine, 1)));
  for (std::size_t index = 0; index < hierarchy.levels().size(); ++index) {
    const LevelKind kind = hierarchy.levels()[index].kind;
    const auto [from, to] = first_pair(hierarchy, index);
    if (kind == LevelKind::leaf_switch || kind == LevelKind::node || from < 0) continue;
    std::byte* mapped = nullptr;
    Offered theirs;
    std::memcpy(&theirs, offered.data() + static_cast<std::size_t>(to) * sizeof theirs, sizeof theirs);
    if (session.rank() == from && theirs.good != 0)
      if (const Result<std::byte*> one = driver_->map(theirs.handle, memory_); one.ok()) mapped = *one;
    samples.links[index].devices =
        measured(mapped != nullptr, mapped != nullptr ? mapped + theirs.offset : nullptr, there_);
    if (mapped != nullptr) driver_->unmap(mapped, memory_);
    session.barrier();
  }
  const std::string why = first_said(session, failed.message());
  return why.empty() ? Status() : Status(Code::unavailable, why);
}

}  // namespace plait::tuner
