// What this process counts for PLAIT_REPORT while the job runs (report/job_report.h).
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "plan/model/collective.h"
#include "plan/model/form.h"
#include "runtime/layer.h"

namespace plait::runtime {

// One line of the table. Texts are interned.
struct ReportKey {
  Collective collective = Collective::barrier;
  int ranks = 0;
  int size_class = -1;
  const char* plan = "host";
  const char* channels = "";
  const char* reason = "";
  Form form = Form::blocking;
  const char* grid = "";  // text() of the communicator's grid_axes(); of none: ""
  auto operator<=>(const ReportKey&) const = default;
};

struct ReportRow {
  std::atomic<std::uint64_t> calls{0}, bytes{0}, nanoseconds{0};

  void add(std::uint64_t call_bytes, std::uint64_t call_nanoseconds) {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(call_bytes, std::memory_order_relaxed);
    nanoseconds.fetch_add(call_nanoseconds, std::memory_order_relaxed);
  }
};

// Sizes are reported in ranges of a factor of eight; -1 is the class of no data.
inline constexpr int size_class_bits = 3;
int size_class(std::size_t bytes);

// The row of a key; made when it is new. Thread-safe; the row lives for ever.
ReportRow& report_row(const ReportKey& key);

// What calls of this process took less than the host's would have, as a trial or a table has measured both.
// Thread-safe.
void note_saved(std::uint64_t nanoseconds);

// Floating-point sums and products of PLAIT_REPRODUCIBLE=order: those whose operands' order did not matter, and those
// that the host has combined in its own. Thread-safe.
struct OrderCounts {
  std::uint64_t calls = 0, bytes = 0, by_host = 0;
};
void note_ordered(std::uint64_t bytes);
void note_order_of_host();
OrderCounts order_counts();

// What a communicator's set-up found out about the links: for the advice on placement. Thread-safe.
void note_links(double network_seconds_per_byte, double ranks_per_core);

// What this process has counted. Thread-safe.
void for_each_row(const std::function<void(const ReportKey& key, const ReportRow& row)>& take);
std::uint64_t saved_nanoseconds();
// The best network that any communicator of this process saw, so that the advice does not claim too much, and the most
// crowded cores.
struct MeasuredLinks {
  double network = 0;  // seconds a byte; 0: not measured
  double crowd = 1;    // ranks a core
};
MeasuredLinks measured_links();

}  // namespace plait::runtime
