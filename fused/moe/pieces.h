// The rows of a pair of ranks, expert after expert, cut into pieces of about the same size, none of which is of two
// experts: by the counts alone, so that both ranks cut alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fused/layer.h"
#include "fused/tiles/tiles.h"

namespace plait::fused {

struct Piece {
  std::int32_t expert = 0;
  Range rows;
};

class Pieces {
 public:
  struct Shape {
    std::int64_t experts = 0, capacity = 0;  // of the pair
    std::int64_t piece_rows = 1;             // at most
  };
  // So many there are at most.
  static std::int64_t most(const Shape& shape) { return shape.capacity / shape.piece_rows + shape.experts; }

  Pieces() = default;
  // Throws where memory is short.
  explicit Pieces(const Shape& shape);
  // `counts`: by expert. Allocates nothing where they are within the capacity.
  void cut(const std::int64_t* counts);

  const std::vector<Piece>& all() const { return pieces_; }
  std::int64_t rows() const { return pieces_.empty() ? 0 : pieces_.back().rows.end; }
  // The piece of a row, which is of an expert's.
  std::size_t piece_of(std::int64_t expert, std::int64_t row) const {
    const First& first = firsts_[static_cast<std::size_t>(expert)];
    return first.piece + static_cast<std::size_t>((row - first.row) / first.rows);
  }

 private:
  struct First {
    std::size_t piece = 0;
    std::int64_t row = 0, rows = 1;  // where the expert's begin, and how many each of its pieces has, but the last
  };
  Shape shape_;
  std::vector<Piece> pieces_;
  std::vector<First> firsts_;  // by expert
};

}  // namespace plait::fused
