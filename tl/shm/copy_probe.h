// What private data costs on its way between two ranks of a node: for the choice among the ways of a shared-memory
// collective.
//
// Both ranks measure at the same time, in step: a stage that the peer has not filled anew since it was last read lies
// in this core's cache, and costs a third of what it does in a collective (two ranks on an AMD EPYC, 256 KiB in stages
// of 16 KiB: 10 us, in step 35, by the kernel 20).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.h"
#include "tl/shm/kernel_copy.h"

namespace plait::tl {

inline constexpr std::array<std::size_t, 4> probed_bytes = {std::size_t{16} << 10, std::size_t{32} << 10,
                                                            std::size_t{64} << 10, std::size_t{256} << 10};
inline constexpr std::uint64_t never = ~std::uint64_t{0};

// Seconds of one copy of each of probed_bytes.
using CopyCosts = std::array<double, probed_bytes.size()>;

// The smallest probed size from which on, up to the largest, `way` costs so many times less than `other`: a power of
// two; `never` where the largest does not.
std::uint64_t faster_from(const CopyCosts& way, const CopyCosts& other, double times);

// Memory that a rank lets a neighbour read while both measure. Its pages exist.
class ProbeSource {
 public:
  ProbeSource() : bytes_(probed_bytes.back(), std::byte{1}) {}
  const std::byte* data() const { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

// What a rank measures with. The memory of the stages is a fresh segment's, zeroed, and may be written to.
struct CopyProbe {
  const std::byte* source = nullptr;  // its own ProbeSource
  std::byte* own_stages = nullptr;
  const std::byte* peer_stages = nullptr;
  std::size_t stages_bytes = 0;  // of all stages of a rank
  detail::RemoteProcess peer;
  std::uint64_t peer_source = 0;           // address of the peer's ProbeSource
  bool kernel = false;                     // whether to measure the kernel's copy
  const std::byte* peer_mapped = nullptr;  // the peer's ProbeSource, as mapped here; nullptr: not to be measured
  // For all of it: where others want the ranks' cores, each step of the two may wait for some milliseconds.
  std::chrono::milliseconds patience{10};
};

// The least of a few attempts each, so that a rank that lost its core meanwhile does not mislead. Takes less than a
// millisecond; the peer measures at the same time. What was not measured is 0: all of it, where the two do not get
// through in time.
struct MeasuredCopies {
  CopyCosts staged{}, kernel{}, mapped{};
};
Result<MeasuredCopies> measure_copies(const CopyProbe& probe);

}  // namespace plait::tl
