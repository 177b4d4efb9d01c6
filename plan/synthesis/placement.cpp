#include "plan/synthesis/placement.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>

namespace plait::plan {

namespace {

constexpr std::size_t most_factors = 8;  // levels of a system, axes of a grid
constexpr std::int64_t most_ranks = std::numeric_limits<int>::max();

std::string joined(std::span<const int> numbers, std::string_view separator) {
  std::string result;
  for (const int number : numbers) result.append(result.empty() ? "" : separator).append(std::to_string(number));
  return result;
}

Status bad(std::string message) { return {Code::invalid, std::move(message)}; }

// Capped one above most_ranks. Precondition: factors are positive.
std::int64_t product(std::span<const int> factors) {
  std::int64_t result = 1;
  for (const int factor : factors) result = std::min(result * factor, most_ranks + 1);
  return result;
}

Status check_factors(std::string_view option, std::string_view kind, std::span<const int> factors) {
  const std::string given = std::string(option) + ' ' + joined(factors, ",");
  if (factors.empty()) return bad(std::string(option) + ": no number given, expected 1 to 8 " + std::string(kind));
  if (factors.size() > most_factors)
    return bad(given + " has " + std::to_string(factors.size()) + ' ' + std::string(kind) + ", expected at most 8");
  for (const int factor : factors)
    if (factor < 1) return bad(given + ": " + std::to_string(factor) + " is not a size, expected at least 1");
  if (product(factors) > most_ranks)
    return bad(given + " multiplies to too many ranks, expected at most " + std::to_string(most_ranks));
  return {};
}

Status check_reduce(std::span<const int> reduce, int axes) {
  const std::string given = "--reduce " + joined(reduce, ",");
  if (reduce.empty()) return bad("--reduce: no axis given, expected at least one");
  for (auto axis = reduce.begin(); axis != reduce.end(); ++axis) {
    if (*axis < 0 || *axis >= axes)
      return bad(given + ": there is no axis " + std::to_string(*axis) + ", expected 0 to " + std::to_string(axes - 1));
    if (std::find(reduce.begin(), axis, *axis) != axis)
      return bad(given + ": axis " + std::to_string(*axis) + " is named twice, expected once");
  }
  return {};
}

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor * divisor != number) large.push_back(number / divisor);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// Fills the matrix cell by cell, row by row. What is left of the columns and of the row always has a completion: for
// each prime it is a matrix of exponents with given row and column sums, which exists whenever the totals agree.
class MatrixEnumeration {
 public:
  MatrixEnumeration(std::span<const int> system, std::span<const int> axes)
      : axes_(axes), left_in_column_(system.begin(), system.end()) {
    matrix_.rows.assign(axes.size(), std::vector<int>(system.size(), 1));
  }
  std::vector<ParallelismMatrix> all() {
    fill_row(0);
    return std::move(found_);
  }

 private:
  void fill_row(std::size_t axis) {
    if (axis == axes_.size())
      found_.push_back(matrix_);
    else
      fill_cell(axis, 0, axes_[axis]);
  }

  void fill_cell(std::size_t axis, std::size_t level, std::int64_t left_in_row) {
    if (level == left_in_column_.size()) return fill_row(axis + 1);
    std::int64_t& left_in_column = left_in_column_[level];
    const std::int64_t further = std::accumulate(left_in_column_.begin() + static_cast<std::ptrdiff_t>(level) + 1,
                                                 left_in_column_.end(), std::int64_t{1}, std::multiplies<>());
    for (const std::int64_t factor : divisors(std::gcd(left_in_column, left_in_row))) {
      if (further % (left_in_row / factor) != 0) continue;
      matrix_.rows[axis][level] = static_cast<int>(factor);
      left_in_column /= factor;
      fill_cell(axis, level + 1, left_in_row / factor);
      left_in_column *= factor;
    }
  }

  std::span<const int> axes_;
  std::vector<std::int64_t> left_in_column_;
  ParallelismMatrix matrix_;
  std::vector<ParallelismMatrix> found_;
};

}  // namespace

std::string text(const ParallelismMatrix& matrix) {
  std::string result;
  for (const std::vector<int>& row : matrix.rows)
    result.append(result.empty() ? "[" : " ").append("[" + joined(row, " ") + "]");
  return result + "]";
}

Status check(const GridRequest& request) {
  if (Status status = check_factors("--system", "levels", request.system); !status.ok()) return status;
  if (Status status = check_factors("--axes", "axes", request.axes); !status.ok()) return status;
  const std::int64_t ranks = product(request.system), shards = product(request.axes);
  if (ranks != shards)
    return bad("--system " + joined(request.system, ",") + " has " + std::to_string(ranks) + " ranks but the axes " +
               joined(request.axes, ",") + " multiply to " + std::to_string(shards));
  return check_reduce(request.reduce, static_cast<int>(request.axes.size()));
}

std::vector<ParallelismMatrix> parallelism_matrices(std::span<const int> system, std::span<const int> axes) {
  return MatrixEnumeration(system, axes).all();
}

std::vector<GroupLevel> group_levels(const ParallelismMatrix& matrix, std::span<const int> reduce) {
  std::vector<GroupLevel> levels;
  if (matrix.rows.empty()) return levels;
  for (std::size_t level = 0; level < matrix.rows.front().size(); ++level) {
    int cardinality = 1;
    for (const int axis : reduce) cardinality *= matrix.rows[static_cast<std::size_t>(axis)][level];
    if (cardinality > 1) levels.push_back({cardinality, static_cast<int>(level)});
  }
  return levels;
}

// A level's coordinate mixes those of the axes in the same order as the grid does: the last axis is the fastest. A grid
// rank's device is therefore a sum of one term an axis, built here axis by axis.
std::vector<int> devices_of_grid(std::span<const int> system, std::span<const int> axes,
                                 const ParallelismMatrix& matrix) {
  std::vector<int> stride(system.size(), 1);  // devices between neighbours of the level along the axis in hand
  for (std::size_t level = system.size(); level-- > 1;) stride[level - 1] = stride[level] * system[level];
  std::vector<int> devices = {0};
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    std::vector<int> offsets = {0};  // of the axis' coordinates
    for (std::size_t level = 0; level < system.size(); ++level) {
      std::vector<int> finer;
      for (const int offset : offsets)
        for (int digit = 0; digit < matrix.rows[axis][level]; ++digit) finer.push_back(offset + digit * stride[level]);
      offsets = std::move(finer);
    }
    std::vector<int> wider;
    for (const int offset : offsets)
      for (const int device : devices) wider.push_back(offset + device);
    devices = std::move(wider);
    for (std::size_t level = 0; level < system.size(); ++level) stride[level] *= matrix.rows[axis][level];
  }
  return devices;
}

}  // namespace plait::plan
