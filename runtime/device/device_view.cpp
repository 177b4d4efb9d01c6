#include "runtime/device/device_view.h"

#include <algorithm>
#include <cstring>

namespace plait::runtime {
namespace {

// A null address may have displacements added all the same (MPI_BOTTOM).
std::byte* moved(const std::byte* address, std::ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(address) + bytes);
}

// What a view asks a stream for, in either direction. `place` is on the device, `at` counts packed bytes.
struct FromDevice {
  tl::DeviceStream& stream;
  std::byte* packed;

  Status copy(std::byte* place, std::uint64_t at, std::size_t bytes) const {
    return stream.copy(packed + at, place, bytes);
  }
  Status copy_rows(std::byte* place, std::size_t distance, std::uint64_t at, std::size_t bytes,
                   std::size_t rows) const {
    return stream.copy_rows(
        {.to = packed + at, .to_pitch = bytes, .from = place, .from_pitch = distance, .bytes = bytes, .rows = rows});
  }
  Status run_kernel(const tl::DeviceRuns& runs, std::uint64_t at) const { return stream.pack(packed + at, runs); }
};

struct ToDevice {
  tl::DeviceStream& stream;
  const std::byte* packed;
  bool one_copy;  // is all that there is to be done for an event

  Status copy(std::byte* place, std::uint64_t at, std::size_t bytes) const {
    if (one_copy && bytes <= tl::DeviceStream::longest_store) return stream.store(place, packed + at, bytes);
    return stream.copy(place, packed + at, bytes);
  }
  Status copy_rows(std::byte* place, std::size_t distance, std::uint64_t at, std::size_t bytes,
                   std::size_t rows) const {
    return stream.copy_rows(
        {.to = place, .to_pitch = distance, .from = packed + at, .from_pitch = bytes, .bytes = bytes, .rows = rows});
  }
  Status run_kernel(const tl::DeviceRuns& runs, std::uint64_t at) const { return stream.unpack(runs, packed + at); }
};

// Packed bytes [begin, end) of a part, which stands at `packed`.
struct Range {
  std::byte* address;
  std::uint64_t packed, begin, end;
};

// A row's rest, whole rows, and the begin of one.
template <class Copies>
Status move_rows(const Copies& copies, const Range& range, std::uint64_t row_bytes, std::int64_t distance) {
  std::uint64_t at = range.begin;
  Status status;
  const auto place = [&] {
    return moved(range.address, static_cast<std::ptrdiff_t>(at / row_bytes) * distance) + at % row_bytes;
  };
  const auto move_within_row = [&] {
    const std::uint64_t bytes = std::min(range.end - at, row_bytes - at % row_bytes);
    status = copies.copy(place(), range.packed + at, bytes);
    at += bytes;
  };
  if (at % row_bytes != 0 && at < range.end) move_within_row();
  if (const std::uint64_t rows = (range.end - at) / row_bytes; status.ok() && rows > 0) {
    status = copies.copy_rows(place(), static_cast<std::size_t>(distance), range.packed + at, row_bytes, rows);
    at += rows * row_bytes;
  }
  if (status.ok() && at < range.end) move_within_row();
  return status;
}

}  // namespace

void DeviceView::start(const DeviceDriver& driver, const tl::DeviceMemory& memory, const DeviceElement& element) {
  driver_ = &driver;
  memory_ = memory;
  element_bytes_ = element.bytes;
  extent_ = element.extent;
  parts_.clear();
  runs_.clear();
  bytes_ = 0;
  kernel_ = false;
  row_bytes_ = 0;
  lowest_ = 0;
  highest_ = static_cast<std::int64_t>(element.bytes);
  if (element.runs.empty()) return;
  lowest_ = element.runs.front().begin;
  highest_ = lowest_;
  for (const ByteRun& run : element.runs) {
    const std::uint64_t packed = runs_.empty() ? 0 : runs_.back().packed + runs_.back().bytes;
    runs_.push_back({run.begin, packed, run.bytes});
    lowest_ = std::min<std::int64_t>(lowest_, run.begin);
    highest_ = std::max(highest_, run.begin + static_cast<std::int64_t>(run.bytes));
  }
  find_rows();
  if (!driver.has_kernels(memory)) return;
  const std::size_t bytes = runs_.size() * sizeof(tl::DeviceRun);
  std::memcpy(kernel_runs_.reserve(bytes, driver, memory), runs_.data(), bytes);
  kernel_ = kernel_runs_.pinned();
}

void DeviceView::find_rows() {
  const std::uint64_t bytes = runs_.front().bytes;
  const std::int64_t distance = runs_.size() > 1 ? runs_[1].place - runs_[0].place : extent_;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].bytes != bytes || runs_[i].place != runs_[0].place + static_cast<std::int64_t>(i) * distance) return;
  rows_end_ = extent_ != static_cast<std::int64_t>(runs_.size()) * distance;
  if (distance < static_cast<std::int64_t>(bytes) || distance > INT32_MAX) return;
  row_bytes_ = bytes;
  row_distance_ = distance;
}

void DeviceView::add(std::byte* address, std::size_t count) {
  if (count == 0) return;
  parts_.push_back({address, bytes_, count * element_bytes_});
  bytes_ += count * element_bytes_;
}

// What lies in several allocations, or partly in the processor's memory, goes run by run.
DeviceView::Way DeviceView::way_of(const Part& part) const {
  if (runs_.empty()) return Way::whole;
  const auto elements = static_cast<std::int64_t>(part.bytes / element_bytes_);
  const std::int64_t last = (elements - 1) * extent_;
  const std::int64_t lowest = lowest_ + std::min<std::int64_t>(last, 0);
  const std::int64_t highest = highest_ + std::max<std::int64_t>(last, 0);
  if (!memory_.contains(moved(part.address, lowest), static_cast<std::size_t>(highest - lowest))) return Way::runs;
  if (kernel_) return Way::kernel;
  return row_bytes_ != 0 ? Way::rows : Way::runs;
}

template <class Copies>
Status DeviceView::move(const Copies& copies, std::uint64_t begin, std::uint64_t end) const {
  const auto move_runs = [&](const Range& range) {
    Status status;
    for (std::uint64_t at = range.begin; at < range.end && status.ok();) {
      const std::uint64_t element = at / element_bytes_, within = at % element_bytes_;
      const auto next = std::ranges::upper_bound(runs_, within, {}, &tl::DeviceRun::packed);
      const tl::DeviceRun& run = *(next - 1);
      const std::uint64_t bytes = std::min(range.end - at, run.packed + run.bytes - within);
      const std::ptrdiff_t place =
          static_cast<std::ptrdiff_t>(element) * extent_ + run.place + static_cast<std::ptrdiff_t>(within - run.packed);
      status = copies.copy(moved(range.address, place), range.packed + at, bytes);
      at += bytes;
    }
    return status;
  };
  const auto run_kernel = [&](const Range& range) {
    const std::span<const tl::DeviceRun> runs(reinterpret_cast<const tl::DeviceRun*>(kernel_runs_.data()),
                                              runs_.size());
    return copies.run_kernel({.elements = range.address,
                              .runs = runs,
                              .packed_bytes = element_bytes_,
                              .extent = extent_,
                              .begin = range.begin,
                              .end = range.end},
                             range.packed + range.begin);
  };
  // Those of all elements at once, where they are as far apart as those of one.
  const auto move_all_rows = [&](const Range& range) {
    Status status;
    const std::uint64_t step = rows_end_ ? element_bytes_ : range.end;
    for (std::uint64_t at = range.begin / step * step; at < range.end && status.ok(); at += step) {
      const std::ptrdiff_t element = static_cast<std::ptrdiff_t>(at / element_bytes_) * extent_;
      const Range part{moved(range.address, element + runs_.front().place), range.packed + at,
                       std::max(range.begin, at) - at, std::min(range.end - at, step)};
      status = move_rows(copies, part, row_bytes_, row_distance_);
    }
    return status;
  };
  Status status;
  for (const Part& part : parts_) {
    if (!status.ok() || part.packed >= end) break;
    if (part.packed + part.bytes <= begin) continue;
    const Range range{part.address, part.packed, std::max(begin, part.packed) - part.packed,
                      std::min(end, part.packed + part.bytes) - part.packed};
    switch (way_of(part)) {
      case Way::whole:
        status = copies.copy(moved(range.address, static_cast<std::ptrdiff_t>(range.begin)), range.packed + range.begin,
                             range.end - range.begin);
        break;
      case Way::rows:
        status = move_all_rows(range);
        break;
      case Way::kernel:
        status = run_kernel(range);
        break;
      case Way::runs:
        status = move_runs(range);
        break;
    }
  }
  return status;
}

Status DeviceView::bring(tl::DeviceStream& stream, std::byte* packed, std::uint64_t begin, std::uint64_t end) const {
  return move(FromDevice{stream, packed}, begin, end);
}

Status DeviceView::take(tl::DeviceStream& stream, const std::byte* packed, std::uint64_t begin,
                        std::uint64_t end) const {
  return move(ToDevice{stream, packed, runs_.empty() && parts_.size() == 1}, begin, end);
}

}  // namespace plait::runtime
