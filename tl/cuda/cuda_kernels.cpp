#include "tl/cuda/cuda_kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "core/log.h"

// A fat binary, or what no driver takes for one (tl/CMakeLists.txt).
extern "C" const unsigned char plait_cuda_image[];

namespace plait::tl {
namespace {

constexpr unsigned threads_a_block = 256, most_blocks = 64;
constexpr unsigned widest_word = 16;

// Of the kernels that combine and move: two blocks for each of an H100's processors; not measured.
constexpr unsigned most_threads = 512, most_collective_blocks = 264;
constexpr unsigned vectors_a_thread = 4;

// By kernel: the type, as its name ends, and the bytes of a number.
struct NumberType {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<NumberType, CudaReduced::kernels> number_types{{{"i8", 1},
                                                                     {"i16", 2},
                                                                     {"i32", 4},
                                                                     {"i64", 8},
                                                                     {"u8", 1},
                                                                     {"u16", 2},
                                                                     {"u32", 4},
                                                                     {"u64", 8},
                                                                     {"f16", 2},
                                                                     {"bf16", 2},
                                                                     {"f32", 4},
                                                                     {"f64", 8}}};
constexpr bool is_real(std::size_t kernel) { return number_types[kernel].name.find('f') != std::string_view::npos; }

// What is computed with as with another type.
Element stand_in(Element element) {
  switch (element) {
    case Element::bool8:
    case Element::logical8:
    case Element::byte8:
      return Element::u8;
    case Element::logical16:
      return Element::u16;
    case Element::logical32:
      return Element::u32;
    case Element::logical64:
      return Element::u64;
    case Element::c32:
      return Element::f32;
    case Element::c64:
      return Element::f64;
    default:
      return element;
  }
}

std::size_t kernel_of(Element element) {
  std::size_t kernel = 0;
  while (kernel < number_types.size() && number_types[kernel].name != name(element)) ++kernel;
  return kernel;
}

// An image of before has none of them.
void load_collectives(const Cuda& cuda, Cuda::Module module, CudaKernels& kernels) {
  bool all = cuda.find_function(&kernels.move, module, "plait_move") == Cuda::success;
  for (std::size_t kernel = 0; kernel < number_types.size(); ++kernel) {
    const std::string name = "plait_reduce_" + std::string(number_types[kernel].name);
    all = all && cuda.find_function(&kernels.reduce[kernel], module, name.c_str()) == Cuda::success;
  }
  if (all) return;
  kernels.move = nullptr;
  kernels.reduce = {};
}

// Bytes before the first address that is a multiple of a vector, the same of all addresses, in whole numbers; all of
// them where there is none.
std::uint64_t head_of(std::span<const unsigned long long> addresses, std::uint64_t all_bytes, std::size_t number) {
  const std::uint64_t first = addresses.front() % widest_word;
  for (const unsigned long long address : addresses)
    if (address % widest_word != first) return all_bytes;
  const std::uint64_t before = (widest_word - first) % widest_word;
  return before % number == 0 ? std::min(before, all_bytes) : all_bytes;
}

unsigned blocks_for(std::uint64_t bytes) {
  const std::uint64_t a_block = std::uint64_t{most_threads} * vectors_a_thread * widest_word;
  return static_cast<unsigned>(std::clamp<std::uint64_t>((bytes + a_block - 1) / a_block, 1, most_collective_blocks));
}

CudaKernels load(const Cuda& cuda) {
  CudaKernels kernels;
  Cuda::Module module = nullptr;
  Cuda::Outcome outcome = cuda.load_module(&module, plait_cuda_image);
  if (outcome == Cuda::success) outcome = cuda.find_function(&kernels.pack, module, "plait_pack");
  if (outcome == Cuda::success) outcome = cuda.find_function(&kernels.unpack, module, "plait_unpack");
  if (outcome == Cuda::success) {
    load_collectives(cuda, module, kernels);
    kernels.fused = find_fused(cuda, module);
    return kernels;
  }
  debug("device memory: no kernels: derived types are copied run by run, reductions are the processor's: " +
        cuda.text_of(outcome));
  return {};
}

}  // namespace

const CudaKernels& kernels_in(const Cuda& cuda, Cuda::Context context) {
  static auto* guard = new std::mutex;
  static auto* known = new std::map<Cuda::Context, CudaKernels>;
  const std::scoped_lock lock(*guard);
  const auto [place, is_new] = known->try_emplace(context);
  if (is_new) place->second = load(cuda);
  return place->second;
}

// The widest word by which all that is copied can be counted.
CudaKernelCall kernel_call(const std::byte* packed, const DeviceRuns& runs) {
  std::uint64_t all = as_address(packed) | as_address(runs.elements) | runs.packed_bytes | runs.begin | runs.end |
                      static_cast<std::uint64_t>(runs.extent) | widest_word;
  for (const DeviceRun& run : runs.runs) all |= static_cast<std::uint64_t>(run.place) | run.packed | run.bytes;
  return {.packed = as_address(packed),
          .elements = as_address(runs.elements),
          .runs = as_address(runs.runs.data()),
          .run_count = static_cast<unsigned>(runs.runs.size()),
          .word_bytes = static_cast<unsigned>(all & (~all + 1)),
          .packed_bytes = runs.packed_bytes,
          .extent = runs.extent,
          .begin = runs.begin,
          .end = runs.end};
}

Cuda::Outcome start_kernel(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaKernelCall& call) {
  std::array<void*, 9> parameters{&call.packed,       &call.elements, &call.runs,  &call.run_count, &call.word_bytes,
                                  &call.packed_bytes, &call.extent,   &call.begin, &call.end};
  const unsigned long long words = (call.end - call.begin) / call.word_bytes;
  const unsigned long long blocks = (words + threads_a_block - 1) / threads_a_block;
  const auto grid = static_cast<unsigned>(std::clamp<unsigned long long>(blocks, 1, most_blocks));
  return cuda.launch(kernel, grid, 1, 1, threads_a_block, 1, 1, 0, stream, parameters.data(), nullptr);
}

// ---- Collectives ----

// A complex number is two of its parts where these are combined each by itself.
CudaReduced cuda_reduced(Op op, Element element) {
  const bool complex = element == Element::c32 || element == Element::c64;
  CudaReduced reduced{
      .kernel = kernel_of(stand_in(element)), .numbers = complex ? 2u : 1u, .op = static_cast<unsigned>(op)};
  if (reduced.kernel == CudaReduced::none) return reduced;
  reduced.bytes = number_types[reduced.kernel].bytes;
  const bool of_reals = op == Op::sum || op == Op::prod || op == Op::max || op == Op::min;
  const bool known = op < Op::maxloc && (of_reals || !is_real(reduced.kernel)) && (!complex || op == Op::sum);
  if (!known) reduced.kernel = CudaReduced::none;
  return reduced;
}

CudaReduceCall reduce_call(const DeviceReduction& reduction, const CudaReduced& reduced) {
  CudaReduceCall call{};
  std::array<unsigned long long, 2 * most_device_parties> addresses{};
  std::size_t count = 0;
  for (const std::byte* source : reduction.sources)
    addresses[count++] = call.sources[call.source_count++] = as_address(source);
  for (const std::byte* result : reduction.results)
    addresses[count++] = call.results[call.result_count++] = as_address(result);
  call.op = reduced.op;
  call.numbers = reduction.elements * reduced.numbers;
  call.head = head_of(std::span(addresses).first(count), call.numbers * reduced.bytes, reduced.bytes) / reduced.bytes;
  return call;
}

Cuda::Outcome start_reduce(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaReduceCall& call) {
  // As if each number had eight bytes: blocks more than enough where they are shorter.
  std::array<void*, 1> parameters{&call};
  return cuda.launch(kernel, blocks_for(call.numbers * sizeof(double)), 1, 1, most_threads, 1, 1, 0, stream,
                     parameters.data(), nullptr);
}

CudaMoveCall move_call(std::span<const DeviceMove> moves) {
  CudaMoveCall call{};
  for (const DeviceMove& move : moves) {
    if (move.bytes == 0 || move.to == move.from) continue;
    const std::array<unsigned long long, 2> addresses{as_address(move.to), as_address(move.from)};
    call.to[call.count] = addresses[0];
    call.from[call.count] = addresses[1];
    call.bytes[call.count] = move.bytes;
    call.heads[call.count] = head_of(addresses, move.bytes, 1);
    ++call.count;
  }
  return call;
}

Cuda::Outcome start_move(const Cuda& cuda, Cuda::Function kernel, Cuda::Stream stream, CudaMoveCall& call) {
  const std::uint64_t most = *std::max_element(call.bytes, call.bytes + call.count);
  const unsigned blocks = std::max(1u, std::min(blocks_for(most), most_collective_blocks / call.count));
  std::array<void*, 1> parameters{&call};
  return cuda.launch(kernel, blocks, call.count, 1, most_threads, 1, 1, 0, stream, parameters.data(), nullptr);
}

}  // namespace plait::tl
