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

constinit std::atomic<std::uint64_t> known_kernel{0}, known_mapped{0};

}  // namespace

SingleCopySizes known_single_copy() { return {known_kernel.load(), known_mapped.load()}; }

void remember_single_copy(const SingleCopySizes& sizes) {
  known_mapped.store(sizes.mapped_from);
  known_kernel.store(sizes.kernel_from);
}

SingleCopySizes forced_single_copy(const Config& config, bool kernel, bool mapped) {
  if (config.single_copy == "none" || (!kernel && !mapped)) return {never, never};
  if (config.single_copy_threshold == 0) return {};
  return allowed_single_copy({config.single_copy_threshold, config.single_copy_threshold}, config, kernel, mapped);
}

SingleCopySizes allowed_single_copy(const SingleCopySizes& measured, const Config& config, bool kernel, bool mapped) {
  const std::string& wanted = config.single_copy;
  const auto size = [](std::uint64_t from, bool works, bool asked_for) {
    if (!works) return never;
    return asked_for && from == never ? usual_size : from;
  };
  return {.kernel_from = size(measured.kernel_from, kernel && wanted != "xpmem" && wanted != "none", wanted == "cma"),
          .mapped_from = size(measured.mapped_from, mapped && wanted != "cma" && wanted != "none", wanted == "xpmem")};
}

SingleCopySizes sizes_of(const MeasuredCopies& copies) {
  SingleCopySizes sizes{never, never};
  if (copies.kernel.back() > 0) sizes.kernel_from = faster_from(copies.kernel, copies.staged);
  if (copies.mapped.back() > 0) sizes.mapped_from = faster_from(copies.mapped, copies.staged);
  if (copies.kernel.back() > 0 && copies.mapped.back() > 0)
    sizes.mapped_from = std::max(sizes.mapped_from, faster_from(copies.mapped, copies.kernel));
  return sizes;
}

Result<SingleCopySizes> agree_on_single_copy(Oob& oob, const SingleCopySizes& mine) {
  const std::array<std::uint64_t, 2> own = {mine.kernel_from, mine.mapped_from};
  std::array<std::uint64_t, 2> all = {0, 0};
  if (Status met = reduce_all(oob, own, all, Op::max, "agree on the single copy"); !met.ok()) return met;
  if (all[0] == 0) return SingleCopySizes{usual_size, never};
  return SingleCopySizes{all[0], all[1]};
}

std::string size_text(std::uint64_t from) { return from == never ? "never" : "from " + format_bytes(from); }

}  // namespace plait::runtime
