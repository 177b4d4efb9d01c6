// A tuning table: for each shape of communicator, collective and range of sizes the plan to take. A file
// (docs/tuning.md, docs/table.schema.json) that `plait tune` writes and PLAIT_TABLE names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/choose/host_rows.h"
#include "plan/model/collective.h"
#include "plan/model/layer.h"
#include "plan/model/machine.h"
#include "topo/hierarchy.h"

namespace plait::plan {

// Of sizes as payload_bytes() tells them: from <= size < to.
struct TunedRange {
  std::size_t from = 0, to = 0;
  std::string plan;         // as named_candidate() takes it; "host": the host's own collective
  double seconds_from = 0;  // predicted, or measured, at `from` ...
  double seconds_to = 0;    // ... and at the largest size
  double host_seconds_from = 0, host_seconds_to = 0;  // what the host took there, measured; 0: not known
};
inline constexpr std::string_view host_plan = "host";

struct TunedCollective {
  Collective collective = Collective::allreduce;
  std::vector<TunedRange> ranges;  // ascending, without overlaps; between them the table says nothing
};

struct TunedShape {
  std::string shape;  // as shape_text() gives it
  std::vector<TunedCollective> collectives;
};

struct TuningTable {
  std::string machine;      // the name of the machine that it was made for
  Fingerprint fingerprint;  // of that machine; empty: fits all
  std::vector<TunedShape> shapes;
  HostEntries host = {};  // for communicators of all shapes; each collective once

  // Nullptr where the table has none.
  const TunedShape* shape(std::string_view text) const;
};

// The table's, or none.
const HostEntries& host_entries(const TuningTable* table);

// What the shape's entry says of a call; nullptr: nothing. allgatherv and reduce_scatter are found as collectives of
// equal segments where the table has no entry of their own. Calls of operators that do not commute are not in tables.
const TunedRange* tuned_range(const TunedShape& shape, const Call& call, int ranks);

// How much less a call takes by the plan that the shape's entry has for it than on the host, in seconds: both times
// lie on the line, in logarithms, between the range's ends. 0 where the table does not say.
double saved_seconds(const TunedShape& shape, const Call& call, int ranks);

// What a job's table must fit and a machine file says of what it was measured on: the MPI library's release, a node's
// processors (describe_processors()) and the channels that may be used.
Fingerprint system_fingerprint(const std::string& mpi, const std::string& hardware,
                               const std::vector<std::string>& channels);

// The name of the first entry that both have and that differs, "hardware" say; empty: they fit. The shape is left out:
// a table is for many.
std::string mismatch(const Fingerprint& table, const Fingerprint& job);

// Fails (invalid) with the place and what was expected there. Plans are checked by the planner, for its communicator.
Result<TuningTable> parse_table(std::string_view text);
std::string table_json(const TuningTable& table);

// Larger files are no tables.
inline constexpr std::size_t largest_table_file = std::size_t{4} << 20;
// Reads and parses a file. Fails (invalid) with its name, the place and the reason. Blocks on the disk.
Result<TuningTable> read_table(const std::string& path);

}  // namespace plait::plan
