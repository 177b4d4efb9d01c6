// The reduction kernels: bytes that one call moves, each source's and each result's counted once, a second; and the
// memcpy of as many bytes (half of them read, half written) for comparison.
//
//   kernels [--benchmark_filter=...]     names are what/type/sources/results/bytes of one array
//
// combine/type/bytes/threads is a reduction of two operands by a team of so many threads (core/work_team.h), halves/...
// the same in equal parts of any size, one a thread, cold_halves/... with operands that are in no cache.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/reduction.h"
#include "core/work_team.h"
#include "perf/helped.h"

namespace {

using namespace plait;
using namespace plait::perf;

constexpr std::size_t page = 4096;

// Arrays that do not fall on the same cache sets.
class Arrays {
 public:
  Arrays(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t skew = i * 5 * 64 % page;
      memory_.emplace_back(bytes + skew + 64, std::byte{1});
      void* at = memory_.back().data() + skew;
      std::size_t space = bytes + 64;
      at_.push_back(static_cast<std::byte*>(std::align(64, bytes, at, space)));
    }
  }
  std::byte* const* first() const { return at_.data(); }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte*> at_;
};

struct Shape {
  Op op;
  Element element;
  std::size_t sources, results, bytes;
  bool streaming;
};

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

void many(benchmark::State& state, const Shape& shape) {
  const Arrays arrays(shape.sources + shape.results, shape.bytes);
  const Reducer reducer = make_reducer(shape.op, shape.element);
  const ManyOperands operands{arrays.first() + shape.sources,      shape.results,  arrays.first(), shape.sources,
                              shape.bytes / reducer.element_bytes, shape.streaming};
  for (auto _ : state) {
    reduce_many(reducer, operands);
    benchmark::ClobberMemory();
  }
  count_bytes(state, (shape.sources + shape.results) * shape.bytes);
}

// What there was before: a pass for each source after the first, and a copy for each further result.
void pairwise(benchmark::State& state, const Shape& shape) {
  const Arrays arrays(shape.sources + shape.results, shape.bytes);
  const Reducer reducer = make_reducer(shape.op, shape.element);
  const std::size_t elements = shape.bytes / reducer.element_bytes;
  std::byte* const* source = arrays.first();
  std::byte* const* result = source + shape.sources;
  for (auto _ : state) {
    reducer.kernel(result[0], source[0], source[1], elements);
    for (std::size_t s = 2; s < shape.sources; ++s) reducer.kernel(result[0], result[0], source[s], elements);
    for (std::size_t r = 1; r < shape.results; ++r) std::memcpy(result[r], result[0], shape.bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, (shape.sources + shape.results) * shape.bytes);
}

void plain_copy(benchmark::State& state, std::size_t bytes) {
  const Arrays arrays(2, bytes);
  for (auto _ : state) {
    std::memcpy(arrays.first()[1], arrays.first()[0], bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2 * bytes);
}

// How a reduction is cut: as copies and reductions of the library are, or in equal parts, one a thread; the latter with
// operands in the caches of the core that takes them, or in memory that was not looked at for long.
enum class Cut { shared_out, warm_halves, cold_halves };

void by_team(benchmark::State& state, std::size_t bytes, int threads, Cut cut) {
  const std::size_t room = cut == Cut::cold_halves ? std::max(bytes, std::size_t{64} << 20) : bytes;
  const Arrays arrays(3, room);
  Helped helped(threads - 1);
  const Reducer reducer = make_reducer(Op::sum, Element::f32);
  const std::size_t elements = bytes / reducer.element_bytes;
  const auto parts = static_cast<std::uint32_t>(threads);
  std::size_t at = 0;
  for (auto _ : state) {
    std::byte* const result = arrays.first()[2] + at;
    const std::byte *left = arrays.first()[0] + at, *right = arrays.first()[1] + at;
    const SharedWork all{elements, reducer.element_bytes, result};
    if (cut == Cut::shared_out)
      combine(reducer, result, left, right, elements);
    else
      helped.team.run(parts, [&](std::uint32_t number) {
        const std::size_t begin = all.begin(number, parts), offset = begin * reducer.element_bytes;
        reducer.kernel(result + offset, left + offset, right + offset, all.begin(number + 1, parts) - begin);
      });
    at = at + 2 * bytes <= room ? at + bytes : 0;
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3 * bytes);
}

void add_teams() {
  for (const std::size_t bytes :
       {std::size_t{16} << 10, std::size_t{32} << 10, std::size_t{64} << 10, std::size_t{128} << 10,
        std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{16} << 20})
    for (const auto& [cut, what] :
         {std::pair(Cut::warm_halves, "halves"), {Cut::cold_halves, "cold_halves"}, {Cut::shared_out, "combine"}})
      for (const int threads : {1, 2}) {
        const std::string name = std::string(what) + "/f32/" + std::to_string(bytes) + "/" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(), [=, cut = cut](auto& state) {
          by_team(state, bytes, threads, cut);
        })->UseRealTime();
      }
}

std::string text(const Shape& shape) {
  return std::string(name(shape.op)) + "/" + std::string(name(shape.element)) + "/" + std::to_string(shape.sources) +
         "/" + std::to_string(shape.results) + "/" + std::to_string(shape.bytes) +
         (shape.streaming ? "/streaming" : "");
}

void add_shapes(Op op, Element element, std::size_t bytes) {
  constexpr std::size_t streaming_from = 1 << 20;
  for (const std::size_t sources : {2, 3, 4, 8}) {
    for (const std::size_t results : {std::size_t{1}, sources}) {
      Shape shape{op, element, sources, results, bytes, false};
      benchmark::RegisterBenchmark(("many/" + text(shape)).c_str(), [shape](auto& state) { many(state, shape); });
      benchmark::RegisterBenchmark(("pairwise/" + text(shape)).c_str(),
                                   [shape](auto& state) { pairwise(state, shape); });
      if (bytes < streaming_from) continue;
      shape.streaming = true;
      benchmark::RegisterBenchmark(("many/" + text(shape)).c_str(), [shape](auto& state) { many(state, shape); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::pair<Op, Element> kinds[] = {{Op::sum, Element::f32}, {Op::sum, Element::f64},
                                          {Op::max, Element::i32}, {Op::prod, Element::c64},
                                          {Op::sum, Element::f80}, {Op::maxloc, Element::pair_f64_i32}};
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{256}, std::size_t{4} << 10, std::size_t{64} << 10,
                                  std::size_t{1} << 20, std::size_t{16} << 20}) {
    benchmark::RegisterBenchmark(("memcpy/" + std::to_string(bytes)).c_str(),
                                 [bytes](auto& state) { plain_copy(state, bytes); });
    for (const auto& [op, element] : kinds) add_shapes(op, element, bytes);
  }
  add_teams();
  benchmark::RunSpecifiedBenchmarks();
}
