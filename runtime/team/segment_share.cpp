#include "runtime/team/segment_share.h"

#include <atomic>

#include "runtime/record/node_counts.h"

namespace plait::runtime {
namespace {

constinit std::atomic<std::size_t> mapped_bytes{0};

}  // namespace

std::size_t mapped_segment_bytes() { return mapped_bytes.load(); }

SegmentShare::SegmentShare(std::size_t bytes, bool made) : bytes_(bytes), made_(made) {
  mapped_bytes += bytes_;
  if (made_) note_segment(bytes_);
}
SegmentShare::~SegmentShare() {
  mapped_bytes -= bytes_;
  if (made_) forget_segment(bytes_);
}

}  // namespace plait::runtime
