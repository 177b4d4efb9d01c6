// Which calls are the host's because it was measured to be the faster one at them: what neither the cost model nor a
// trial finds out. They are data, a row each; a tuning table may bring those of its machine (docs/tuning.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "plan/model/collective.h"
#include "plan/model/form.h"
#include "plan/model/layer.h"

namespace plait::plan {

// Why such a call is the host's, in the words of the report.
namespace reasons {
inline constexpr const char* host_is_faster = "the host is faster";
inline constexpr const char* host_has_lengths = "the host is faster with lengths such as the last";
inline constexpr const char* too_short_to_order = "too short to agree on the order of starts between nodes";
inline constexpr const char* long_prefix = "vectors whose scan is no faster than the host's";
}  // namespace reasons

// A bit each.
using CollectiveSet = std::uint32_t;
static_assert(collective_count <= std::numeric_limits<CollectiveSet>::digits);
constexpr CollectiveSet set_of(Collective collective) { return CollectiveSet{1} << static_cast<int>(collective); }
constexpr bool has(CollectiveSet set, Collective collective) { return (set & set_of(collective)) != 0; }
using FormSet = std::uint8_t;
constexpr FormSet set_of(Form form) { return static_cast<FormSet>(1 << static_cast<int>(form)); }
constexpr bool has(FormSet set, Form form) { return (set & set_of(form)) != 0; }
inline constexpr FormSet every_form = (1 << form_count) - 1;

// What has the calls that Plait leaves: an MPI, or the next layer of UCC.
enum class HostKind : std::uint8_t { mpi, layers };

// Sizes from <= size < to of calls that are the host's.
struct HostRow {
  enum class Where : std::uint8_t { anywhere, within_node, between_nodes };
  // Which size. That of a message is the mean of those that a rank sends to others; ranks that exchange data by pairs
  // wish by their own, and decide by what all have wished in earlier calls.
  enum class Of : std::uint8_t { call, all_ranks, message };
  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
  static constexpr int any_number = std::numeric_limits<int>::max();

  CollectiveSet collectives = 0;
  FormSet forms = every_form;
  Where where = Where::anywhere;
  int least_ranks = 2, most_ranks = any_number;
  Of of = Of::call;
  std::size_t from = 0, to = no_limit;
  const char* reason = reasons::host_is_faster;
  bool of_layers = true;  // holds where the host is UCC's next layer, too
  bool always = false;    // with PLAIT_HOST=0 as well, and before the ranks know where they are

  // Whether it says something of calls of that kind, by their size.
  bool is_of(Form form, Collective collective) const {
    return of != Of::message && has(collectives, collective) && has(forms, form);
  }
  bool holds(std::size_t bytes) const { return from <= bytes && (bytes < to || to == no_limit); }
};

// Plait's own.
std::span<const HostRow> usual_host_rows();

// A table's, of one collective, instead of Plait's own; without rows nothing of it is the host's by its size.
struct HostEntry {
  Collective collective = Collective::allreduce;
  std::vector<HostRow> rows;
};
using HostEntries = std::vector<HostEntry>;

// Plait's own, but for collectives that `entries` has.
std::vector<HostRow> host_rows(const HostEntries& entries);

// Of a call, the same on all ranks: as payload_bytes() tells it; and over all ranks, where each has a part of its own.
struct CallSize {
  std::size_t call = 0, all_ranks = 0;
};
CallSize call_size(const Call& call, int ranks);

// By which row that holds always a call is the host's; nullptr: by none.
const HostRow* always_hosts(const HostEntries& entries, Form form, Collective collective, CallSize size);

// The rows that hold on one communicator.
class HostSizes {
 public:
  struct Ranks {
    int ranks = 0;
    bool between_nodes = false;
    HostKind host = HostKind::mpi;
  };
  HostSizes() = default;  // none
  HostSizes(const HostEntries& entries, Ranks ranks, bool host_when_faster);

  std::span<const HostRow> rows() const { return rows_; }
  // Whether row() may find one: a glance, for the sake of short calls.
  bool any(Form form, Collective collective) const { return has(asked_[static_cast<std::size_t>(form)], collective); }
  // By which row a call is the host's, but for those below; nullptr: by none.
  const HostRow* row(Form form, Collective collective, CallSize size) const;
  // The same among rows for all forms of a collective that plans are made for: these stand behind a forced plan and
  // behind a table's, so that the planner asks for them.
  const HostRow* row_of_planned(Collective collective, CallSize size) const;
  // Whether there are calls that ranks wish for the host.
  bool asks_ranks(Collective collective) const;
  // Whether a rank wishes a call for the host whose messages have that mean length.
  bool wished(Collective collective, std::size_t mean_bytes) const;

 private:
  std::vector<HostRow> rows_;
  std::array<CollectiveSet, form_count> asked_{};
};

}  // namespace plait::plan
