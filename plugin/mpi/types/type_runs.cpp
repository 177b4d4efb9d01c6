#include "plugin/mpi/types/type_runs.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "plugin/mpi/types/type_contents.h"

namespace plait::plugin {
namespace {

class Runs {
 public:
  void add(std::ptrdiff_t begin, std::size_t bytes) {
    if (bytes == 0) return;
    if (!runs_.empty() && runs_.back().begin + static_cast<std::ptrdiff_t>(runs_.back().bytes) == begin)
      runs_.back().bytes += bytes;
    else
      runs_.push_back({begin, bytes});
  }
  std::vector<ByteRun> take() { return std::move(runs_); }

 private:
  std::vector<ByteRun> runs_;
};

void add_type(Runs& runs, const Datatype& type, std::ptrdiff_t at);

// What the parts are elements of. Its runs are looked for once, however many parts there are.
class Part {
 public:
  explicit Part(MPI_Datatype type) : facts_(facts_of(type)) {
    Runs runs;
    add_type(runs, facts_, 0);
    runs_ = runs.take();
  }
  std::ptrdiff_t extent() const { return facts_.extent; }
  void add_block(Runs& runs, std::int64_t length, std::ptrdiff_t at) const {
    for (std::int64_t i = 0; i < length; ++i)
      for (const ByteRun& run : runs_) runs.add(at + i * facts_.extent + run.begin, run.bytes);
  }

 private:
  Datatype facts_;
  std::vector<ByteRun> runs_;
};

using Values = std::span<const std::int64_t>;

// `unit`: bytes that displacements are counted in.
void add_blocks(Runs& runs, const Part& part, Values lengths, Values displacements, std::ptrdiff_t unit) {
  for (std::size_t i = 0; i < displacements.size(); ++i)
    part.add_block(runs, lengths[lengths.size() > 1 ? i : 0], displacements[i] * unit);
}

void add_struct(Runs& runs, const TypeContents& contents) {
  const auto parts = static_cast<std::size_t>(contents.values()[0]);
  const Values lengths = contents.values().subspan(1, parts),
               displacements = contents.values().subspan(1 + parts, parts);
  for (std::size_t i = 0; i < parts; ++i)
    if (lengths[i] > 0) Part(contents.types()[i]).add_block(runs, lengths[i], displacements[i]);
}

// ---- Parts of arrays ----

struct Array {
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<std::int64_t>> chosen;  // in each dimension, ascending
  bool last_is_fastest = true;                    // C; else Fortran
};

void add_array(Runs& runs, const Part& part, Array array) {
  if (array.last_is_fastest) {
    std::ranges::reverse(array.sizes);
    std::ranges::reverse(array.chosen);
  }
  if (std::ranges::any_of(array.chosen, [](const auto& indices) { return indices.empty(); })) return;
  std::vector<std::size_t> at(array.sizes.size());
  while (true) {
    std::int64_t element = 0;
    for (std::size_t d = at.size(); d-- > 0;) element = element * array.sizes[d] + array.chosen[d][at[d]];
    part.add_block(runs, 1, element * part.extent());
    std::size_t d = 0;
    while (d < at.size() && ++at[d] == array.chosen[d].size()) at[d++] = 0;
    if (d == at.size()) return;
  }
}

Array subarray(const TypeContents& contents) {
  const Values values = contents.values();
  const auto dimensions = static_cast<std::size_t>(values[0]);
  const std::size_t first = contents.large() ? 2 : 1;
  const std::int64_t order = contents.large() ? values[1] : values.back();
  const Values sizes = values.subspan(first, dimensions), parts = values.subspan(first + dimensions, dimensions),
               starts = values.subspan(first + 2 * dimensions, dimensions);
  Array array{.sizes = {sizes.begin(), sizes.end()}, .chosen = {}, .last_is_fastest = order == MPI_ORDER_C};
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::vector<std::int64_t>& indices = array.chosen.emplace_back();
    for (std::int64_t i = 0; i < parts[d]; ++i) indices.push_back(starts[d] + i);
  }
  return array;
}

struct Distribution {
  std::int64_t size, way, argument, processes, process;
};

// Blocks of the array are dealt out to the processes in turn; there is one round of blocks as long as can be.
std::vector<std::int64_t> own_indices(const Distribution& of) {
  const bool cyclic = of.way == MPI_DISTRIBUTE_CYCLIC, by_default = of.argument == MPI_DISTRIBUTE_DFLT_DARG;
  const std::int64_t even = (of.size + of.processes - 1) / of.processes;
  const std::int64_t block = of.way == MPI_DISTRIBUTE_NONE ? of.size : by_default ? (cyclic ? 1 : even) : of.argument;
  std::vector<std::int64_t> indices;
  for (std::int64_t begin = of.process * block; begin < of.size; begin += of.processes * block)
    for (std::int64_t i = begin; i < std::min(begin + block, of.size); ++i) indices.push_back(i);
  return indices;
}

// Processes are numbered with the last dimension fastest, whatever the array's order.
Array darray(const TypeContents& contents) {
  const Values values = contents.values();
  const auto dimensions = static_cast<std::size_t>(values[2]);
  const auto list = [&](std::size_t index) { return values.subspan(3 + index * dimensions, dimensions); };
  const std::size_t first = contents.large() ? 0 : 1;
  const Values sizes = contents.large() ? values.last(dimensions) : list(0);
  const Values ways = list(first), arguments = list(first + 1), processes = list(first + 2);
  const std::int64_t order = values[3 + (first + 3) * dimensions];
  Array array{.sizes = {sizes.begin(), sizes.end()}, .chosen = {}, .last_is_fastest = order == MPI_ORDER_C};
  array.chosen.resize(dimensions);
  std::int64_t rank = values[1];
  for (std::size_t d = dimensions; d-- > 0; rank /= processes[d])
    array.chosen[d] = own_indices({.size = sizes[d],
                                   .way = ways[d],
                                   .argument = arguments[d],
                                   .processes = processes[d],
                                   .process = rank % processes[d]});
  return array;
}

void add_parts(Runs& runs, const TypeContents& contents) {
  const Values values = contents.values();
  if (contents.combiner() == MPI_COMBINER_STRUCT) return add_struct(runs, contents);
  const Part part(contents.types().front());
  const auto list = [&](std::size_t from) { return values.subspan(from, static_cast<std::size_t>(values[0])); };
  const auto count = [&] { return static_cast<std::size_t>(values[0]); };
  switch (contents.combiner()) {
    case MPI_COMBINER_CONTIGUOUS:
      return part.add_block(runs, values[0], 0);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR: {
      const std::ptrdiff_t unit = contents.combiner() == MPI_COMBINER_VECTOR ? part.extent() : 1;
      for (std::int64_t i = 0; i < values[0]; ++i) part.add_block(runs, values[1], i * values[2] * unit);
      return;
    }
    case MPI_COMBINER_INDEXED:
      return add_blocks(runs, part, list(1), list(1 + count()), part.extent());
    case MPI_COMBINER_HINDEXED:
      return add_blocks(runs, part, list(1), list(1 + count()), 1);
    case MPI_COMBINER_INDEXED_BLOCK:
      return add_blocks(runs, part, values.subspan(1, 1), list(2), part.extent());
    case MPI_COMBINER_HINDEXED_BLOCK:
      return add_blocks(runs, part, values.subspan(1, 1), list(2), 1);
    case MPI_COMBINER_SUBARRAY:
      return add_array(runs, part, subarray(contents));
    case MPI_COMBINER_DARRAY:
      return add_array(runs, part, darray(contents));
    default:  // a duplicate, or other bounds: the same data
      return part.add_block(runs, 1, 0);
  }
}

// Of pairs of numbers, which may have a gap between them, the second is an int.
void add_predefined(Runs& runs, const Datatype& type, std::ptrdiff_t at) {
  const std::size_t first = type.size - sizeof(int);
  const std::size_t second_at = (first + alignof(int) - 1) / alignof(int) * alignof(int);
  runs.add(at, first);
  runs.add(at + static_cast<std::ptrdiff_t>(second_at), sizeof(int));
}

void add_type(Runs& runs, const Datatype& type, std::ptrdiff_t at) {
  if (type.size == 0) return;
  if (const std::optional<ByteRun> whole = run_of(type)) return runs.add(at + whole->begin, whole->bytes);
  const TypeContents contents(type.handle);
  if (contents.predefined()) return add_predefined(runs, type, at);
  Runs parts;
  add_parts(parts, contents);
  for (const ByteRun& run : parts.take()) runs.add(at + run.begin, run.bytes);
}

}  // namespace

std::vector<ByteRun> runs_of(const Datatype& type) {
  Runs runs;
  add_type(runs, type, 0);
  return runs.take();
}

}  // namespace plait::plugin
