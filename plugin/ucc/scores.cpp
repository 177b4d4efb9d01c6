#include "plugin/ucc/scores.h"

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "plan/choose/host_rows.h"

namespace plait::plugin {
namespace {

struct Named {
  Collective collective;
  std::string_view name;
  enum class Size : unsigned char { same, all_parts, none } size;  // none: UCC knows no size of such a call
};
using Size = Named::Size;

constexpr auto names = std::to_array<Named>({
    {Collective::allgather, "allgather", Size::all_parts},
    {Collective::allgatherv, "allgatherv", Size::same},
    {Collective::allreduce, "allreduce", Size::same},
    {Collective::alltoall, "alltoall", Size::all_parts},
    {Collective::alltoallv, "alltoallv", Size::none},
    {Collective::barrier, "barrier", Size::none},
    {Collective::bcast, "bcast", Size::same},
    {Collective::gather, "gather", Size::all_parts},
    {Collective::gatherv, "gatherv", Size::none},
    {Collective::reduce, "reduce", Size::same},
    {Collective::reduce_scatter_block, "reduce_scatter", Size::same},
    {Collective::reduce_scatter, "reduce_scatterv", Size::same},
    {Collective::scatter, "scatter", Size::all_parts},
    {Collective::scatterv, "scatterv", Size::none},
});

// Between two ranks of a node tl/ucp has less to do for what one rank sends off and is done with. Bytes of the vector,
// or of a rank's part, up to which it is left to that. `scripts/test-systems --only timings ucc` with these rows away,
// us by ucp and here, 8 and 512 B: bcast 0.15 and 0.19, 0.21 and 0.21; reduce 0.19 and 0.24, 0.24 and 0.25; gather 0.16
// and 0.23, 0.20 and 0.25.
struct Left {
  Collective collective;
  std::size_t up_to;
};
constexpr auto left_to_ucp = std::to_array<Left>({
    {Collective::bcast, 256},
    {Collective::reduce, 512},
    {Collective::gather, 512},
});

std::string text_of(std::size_t bytes, std::size_t times) {
  if (bytes > std::numeric_limits<std::size_t>::max() / times) return "inf";
  return std::to_string(bytes * times);
}

// UCC has neither end of a range that begins after another one.
std::string range_text(plan::PayloadRange range, std::size_t times) {
  const bool endless = range.to == plan::HostRow::no_limit;
  const std::size_t before = range.from > 0 ? range.from * times - 1 : 0;
  return text_of(before, 1) + "-" + (endless ? "inf" : text_of(range.to, times));
}

}  // namespace

std::string scores_of_host(const plan::Planner& planner, int score, bool measured) {
  std::string text;
  const bool pair = planner.hierarchy().ranks() == 2 && planner.hierarchy().nodes() == 1;
  for (const Named& one : names) {
    std::vector<plan::PayloadRange> ranges = planner.host_ranges(Form::nonblocking, one.collective);
    for (const Left& left : left_to_ucp)
      if (measured && pair && left.collective == one.collective) ranges.push_back({.from = 0, .to = left.up_to + 1});
    for (const plan::PayloadRange range : ranges) {
      const bool all_sizes = range.from == 0 && range.to == plan::HostRow::no_limit;
      if (range.to <= range.from || (one.size == Size::none && !all_sizes)) continue;
      const std::size_t times = one.size == Size::all_parts ? static_cast<std::size_t>(planner.hierarchy().ranks()) : 1;
      text.append(text.empty() ? "" : "#").append(one.name);
      if (!all_sizes) text.append(":").append(range_text(range, times));
      text.append(":").append(std::to_string(score));
    }
  }
  return text;
}

}  // namespace plait::plugin
