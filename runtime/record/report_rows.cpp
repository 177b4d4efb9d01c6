#include "runtime/record/report_rows.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "core/immortal.h"

namespace plait::runtime {
namespace {

struct Rows {
  std::mutex guard;
  std::map<ReportKey, std::unique_ptr<ReportRow>> by_key;
};

Rows& rows() {
  static Immortal<Rows> all;  // never destroyed: calls may come until the process ends
  return *all;
}

struct GuardedLinks {
  std::mutex guard;
  MeasuredLinks links;
};
GuardedLinks& measured() {
  static Immortal<GuardedLinks> all;  // never destroyed, like the rows
  return *all;
}

constinit std::atomic<std::uint64_t> saved{0};
constinit std::atomic<std::uint64_t> ordered_calls{0}, ordered_bytes{0}, ordered_by_host{0};

}  // namespace

int size_class(std::size_t bytes) { return bytes == 0 ? -1 : (std::bit_width(bytes) - 1) / size_class_bits; }

ReportRow& report_row(const ReportKey& key) {
  const std::scoped_lock lock(rows().guard);
  std::unique_ptr<ReportRow>& row = rows().by_key[key];
  if (row == nullptr) row = std::make_unique<ReportRow>();
  return *row;
}

void for_each_row(const std::function<void(const ReportKey& key, const ReportRow& row)>& take) {
  const std::scoped_lock lock(rows().guard);
  for (const auto& [key, row] : rows().by_key) take(key, *row);
}

void note_saved(std::uint64_t nanoseconds) { saved.fetch_add(nanoseconds, std::memory_order_relaxed); }

std::uint64_t saved_nanoseconds() { return saved.load(); }

void note_ordered(std::uint64_t bytes) {
  ordered_calls.fetch_add(1, std::memory_order_relaxed);
  ordered_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void note_order_of_host() { ordered_by_host.fetch_add(1, std::memory_order_relaxed); }

OrderCounts order_counts() {
  return {.calls = ordered_calls.load(), .bytes = ordered_bytes.load(), .by_host = ordered_by_host.load()};
}

void note_links(double network_seconds_per_byte, double ranks_per_core) {
  const std::scoped_lock lock(measured().guard);
  MeasuredLinks& links = measured().links;
  if (network_seconds_per_byte > 0 && (links.network == 0 || network_seconds_per_byte < links.network))
    links.network = network_seconds_per_byte;
  links.crowd = std::max(links.crowd, ranks_per_core);
}

MeasuredLinks measured_links() {
  const std::scoped_lock lock(measured().guard);
  return measured().links;
}

}  // namespace plait::runtime
