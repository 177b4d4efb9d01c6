// From which size on shared-memory collectives between private buffers go without the stages: measured once in a
// process's life.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/config.h"
#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/oob.h"
#include "tl/shm/copy_probe.h"

namespace plait::runtime {

// Bytes of one copy between two ranks from which on a way is taken, or `never`. 0: not known.
struct SingleCopySizes {
  std::uint64_t kernel_from = 0;  // cross-memory attach
  std::uint64_t mapped_from = 0;  // XPMEM
  // Cross-memory attach of what the two ranks of a node only move: it has less to win by than where stages are read by
  // several ranks, or combined as they are read.
  std::uint64_t pair_from = 0;
  bool known() const { return kernel_from != 0; }
};
inline constexpr SingleCopySizes no_single_copy{
    .kernel_from = tl::never, .mapped_from = tl::never, .pair_from = tl::never};

// What was measured, or agreed upon, in this process. Thread-safe.
SingleCopySizes known_single_copy();
void remember_single_copy(const SingleCopySizes& sizes);

// What the settings say without a measurement; not known() where they leave it open. The same on all ranks.
// `kernel`, `mapped`: whether the ways work between all ranks.
SingleCopySizes forced_single_copy(const Config& config, bool kernel, bool mapped);

// What is taken in the end: `measured` within the bounds of the settings.
SingleCopySizes allowed_single_copy(const SingleCopySizes& measured, const Config& config, bool kernel, bool mapped);

// The sizes of a rank's own measurement; not known where there is none. The kernel's way has to beat the stages, XPMEM
// both.
SingleCopySizes sizes_of(const MeasuredCopies& copies);

// Collective over `comm`, whose errors must be returned. The largest of the ranks' sizes: a way that one of them finds
// slow is slow for all. Ranks that measured nothing give sizes that are not known.
Result<SingleCopySizes> agree_on_single_copy(Oob& oob, const SingleCopySizes& mine);

// "from 32 KiB", "never", for messages.
std::string size_text(std::uint64_t from);

}  // namespace plait::runtime
