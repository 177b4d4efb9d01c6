#include "runtime/team/single_copy.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/units.h"
#include "runtime/oob/oob.h"

namespace plait::runtime {
namespace {

// Where there was no measurement, on any rank.
constexpr std::uint64_t usual_size = 32 * 1024;

// A way that wins by less in the probe loses elsewhere: the ranks wait for each other once more, a reduction reads the
// stages anyway, and what several ranks read stays in a cache. Two ranks that only move data wait, nothing else.
// Measured where the kernel takes 20 us for 256 KiB and the stages 25 (an AMD EPYC, two ranks), us by the kernel and in
// stages: all-to-all of 256 KiB 28 and 31, of 2 MiB 211 and 287; scatter of 256 KiB 17 and 24, of 2 MiB 127 and 153.
constexpr double clearly = 1.5, just = 1.1;

constinit std::atomic<std::uint64_t> known_kernel{0}, known_mapped{0}, known_pair{0};

}  // namespace

SingleCopySizes known_single_copy() {
  return {.kernel_from = known_kernel.load(), .mapped_from = known_mapped.load(), .pair_from = known_pair.load()};
}

void remember_single_copy(const SingleCopySizes& sizes) {
  known_mapped.store(sizes.mapped_from);
  known_pair.store(sizes.pair_from);
  known_kernel.store(sizes.kernel_from);
}

SingleCopySizes forced_single_copy(const Config& config, bool kernel, bool mapped) {
  if (config.single_copy == "none" || (!kernel && !mapped)) return no_single_copy;
  const std::uint64_t from = config.single_copy_threshold;
  if (from == 0) return {};
  return allowed_single_copy({.kernel_from = from, .mapped_from = from, .pair_from = from}, config, kernel, mapped);
}

SingleCopySizes allowed_single_copy(const SingleCopySizes& measured, const Config& config, bool kernel, bool mapped) {
  const std::string& wanted = config.single_copy;
  const auto size = [](std::uint64_t from, bool works, bool asked_for) {
    if (!works) return never;
    return asked_for && from == never ? usual_size : from;
  };
  const bool by_kernel = kernel && wanted != "xpmem" && wanted != "none";
  return {.kernel_from = size(measured.kernel_from, by_kernel, wanted == "cma"),
          .mapped_from = size(measured.mapped_from, mapped && wanted != "cma" && wanted != "none", wanted == "xpmem"),
          .pair_from = size(measured.pair_from, by_kernel, wanted == "cma")};
}

SingleCopySizes sizes_of(const MeasuredCopies& copies) {
  if (copies.staged.back() <= 0) return {};
  SingleCopySizes sizes = no_single_copy;
  if (copies.kernel.back() > 0) {
    sizes.kernel_from = faster_from(copies.kernel, copies.staged, clearly);
    sizes.pair_from = faster_from(copies.kernel, copies.staged, just);
  }
  if (copies.mapped.back() > 0) sizes.mapped_from = faster_from(copies.mapped, copies.staged, clearly);
  if (copies.kernel.back() > 0 && copies.mapped.back() > 0)
    sizes.mapped_from = std::max(sizes.mapped_from, faster_from(copies.mapped, copies.kernel, just));
  return sizes;
}

Result<SingleCopySizes> agree_on_single_copy(Oob& oob, const SingleCopySizes& mine) {
  const std::array<std::uint64_t, 3> own = {mine.kernel_from, mine.mapped_from, mine.pair_from};
  std::array<std::uint64_t, 3> all = {0, 0, 0};
  if (Status met = reduce_all(oob, own, all, Op::max, "agree on the single copy"); !met.ok()) return met;
  if (all[0] == 0) return SingleCopySizes{.kernel_from = never, .mapped_from = never, .pair_from = usual_size};
  return SingleCopySizes{.kernel_from = all[0], .mapped_from = all[1], .pair_from = all[2]};
}

std::string size_text(std::uint64_t from) { return from == never ? "never" : "from " + format_bytes(from); }

}  // namespace plait::runtime
