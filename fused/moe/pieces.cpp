#include "fused/moe/pieces.h"

#include "fused/tiles/blocks.h"

namespace plait::fused {

Pieces::Pieces(const Shape& shape) : shape_(shape), firsts_(static_cast<std::size_t>(shape.experts)) {
  pieces_.reserve(static_cast<std::size_t>(most(shape)));
}

void Pieces::cut(const std::int64_t* counts) {
  pieces_.clear();
  std::int64_t row = 0;
  for (std::int32_t expert = 0; expert < shape_.experts; ++expert) {
    const Range rows{row, row + counts[expert]};
    const std::int64_t pieces = blocks_of(rows.length(), shape_.piece_rows);
    First& first = firsts_[static_cast<std::size_t>(expert)];
    first = {
        .piece = pieces_.size(), .row = row, .rows = std::max<std::int64_t>((rows.length() + pieces - 1) / pieces, 1)};
    for (std::int64_t at = rows.begin; at < rows.end; at += first.rows)
      pieces_.push_back({expert, {at, std::min(at + first.rows, rows.end)}});
    row = rows.end;
  }
}

}  // namespace plait::fused
