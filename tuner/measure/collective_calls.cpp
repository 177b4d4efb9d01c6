#include "tuner/measure/collective_calls.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <numeric>
#include <string>

#include "core/units.h"

namespace plait::tuner {
namespace {

using Element = std::int32_t;

constexpr std::size_t largest_buffer_bytes = INT_MAX;  // counts and displacements of MPI are ints
constexpr std::size_t line_bytes = 64;                 // buffers are aligned as a program that cares for speed does it
constexpr std::align_val_t alignment{line_bytes};

bool scatters_sums(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
}

bool sums(Collective collective) { return reduces(collective) && collective != Collective::barrier; }

bool sums_prefixes(Collective collective) { return collective == Collective::scan || collective == Collective::exscan; }

// Whether each rank has a message of its own for each other.
bool to_all(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::alltoallv ||
         collective == Collective::alltoallw;
}

bool from_root_to_each(Collective collective) {
  return collective == Collective::scatter || collective == Collective::scatterv;
}

// Whether some rank holds one message for, or of, every rank.
bool holds_all_messages(Collective collective) {
  return !sums(collective) && collective != Collective::barrier && collective != Collective::bcast;
}

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// splitmix64's finaliser: neighbouring numbers get keys that have nothing in common.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// ---- Messages: the words of a message are an arithmetic progression of an odd step, so that no two are alike ----

using Word = std::uint64_t;

Word word_at(std::uint64_t key, std::size_t index) { return key + index * 0x9e3779b97f4a7c15u; }

void fill_message(std::byte* message, std::size_t bytes, std::uint64_t key) {
  for (std::size_t begin = 0; begin < bytes; begin += sizeof(Word)) {
    const Word word = word_at(key, begin / sizeof(Word));
    std::memcpy(message + begin, &word, std::min(sizeof(Word), bytes - begin));
  }
}

std::optional<std::size_t> first_difference(const std::byte* actual, const std::byte* expected, std::size_t bytes) {
  const auto [found, ignored] = std::mismatch(actual, actual + bytes, expected);
  if (found == actual + bytes) return std::nullopt;
  return static_cast<std::size_t>(found - actual);
}

// By way of a small expected block: to make and compare a block in cache is as fast as to read the message.
std::optional<std::size_t> first_wrong_byte_of(const std::byte* message, std::size_t bytes, std::uint64_t key) {
  std::array<Word, 512> block;
  for (std::size_t begin = 0; begin < bytes; begin += sizeof block) {
    for (std::size_t index = 0; index < block.size(); ++index) {
      block[index] = word_at(key, begin / sizeof(Word) + index);
    }
    const std::size_t length = std::min(sizeof block, bytes - begin);
    const auto* expected = reinterpret_cast<const std::byte*>(block.data());
    if (std::memcmp(message + begin, expected, length) == 0) continue;
    return begin + *first_difference(message + begin, expected, length);
  }
  return std::nullopt;
}

// ---- Sums: rank r contributes base + step * weight(r), so that the sum follows from the sum of the weights, and a
// contribution that is missing or counts twice shows. 15, 5 and 10 bits: 32000 ranks do not overflow. ----

struct Term {
  Element base, step;
};

Term term_at(std::uint64_t key, std::size_t index) {
  const std::uint32_t bits = static_cast<std::uint32_t>(key) + static_cast<std::uint32_t>(index) * 0x9e3779b1u;
  return {static_cast<Element>(bits >> 17), static_cast<Element>(1 + (bits >> 12 & 31))};
}

Element weight(int rank) { return static_cast<Element>(mixed(static_cast<std::uint64_t>(rank)) & 1023); }

void fill_terms(std::byte* vector, std::size_t elements, std::uint64_t key, int rank) {
  const Element factor = weight(rank);
  for (std::size_t index = 0; index < elements; ++index) {
    const Term term = term_at(key, index);
    const Element value = term.base + term.step * factor;
    std::memcpy(vector + index * sizeof value, &value, sizeof value);
  }
}

Element sum_of_weights(int ranks) {
  Element sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += weight(rank);
  return sum;
}

}  // namespace

Result<std::size_t> measurable_bytes(Collective collective, std::size_t wanted, int ranks) {
  if (collective == Collective::barrier) return std::size_t{0};
  const auto all = static_cast<std::size_t>(ranks);
  const std::size_t copies = holds_all_messages(collective) ? all : 1;
  std::size_t unit = 1;
  if (sums(collective)) unit = sizeof(Element) * (collective == Collective::reduce_scatter_block ? all : 1);
  if (wanted <= largest_buffer_bytes / copies) {
    const std::size_t bytes = round_up(wanted, unit);
    if (bytes <= largest_buffer_bytes / copies) return bytes;
  }
  const std::size_t most = largest_buffer_bytes / copies / unit * unit;
  return {Code::invalid, std::string(name(collective)) + " of " + format_bytes(wanted) + " with " +
                             std::to_string(ranks) + " ranks: expected at most " + std::to_string(most) +
                             " bytes, because MPI counts with ints"};
}

void CollectiveCall::Release::operator()(std::byte* memory) const {
  if (allocation != nullptr) {
    MPI_Free_mem(allocation);
  } else {
    ::operator delete(memory, alignment);
  }
}

CollectiveCall::CollectiveCall(const CallSpec& spec, int rank, int ranks) : spec_(spec), rank_(rank), ranks_(ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  const std::size_t count = sums(spec.collective) ? spec.bytes / sizeof(Element) : spec.bytes;
  count_ = static_cast<int>(spec.collective == Collective::reduce_scatter_block ? count / all : count);
  const bool listed = spec.collective == Collective::allgatherv || by_pairs(spec.collective);
  if (listed) counts_.assign(all, count_);
  if (scatters_sums(spec.collective)) {
    counts_.assign(all, static_cast<int>(count / all));
    std::fill_n(counts_.begin(), count % all, static_cast<int>(count / all + 1));
  }
  displacements_.resize(counts_.size());
  std::exclusive_scan(counts_.begin(), counts_.end(), displacements_.begin(), 0);
}

Result<CollectiveCall> CollectiveCall::make(const CallSpec& spec, int rank, int ranks) {
  CollectiveCall call(spec, rank, ranks);
  if (call.allocate()) return call;
  return {Code::unavailable, "no memory for " + std::string(name(spec.collective)) + " of " + format_bytes(spec.bytes)};
}

// MPICH refuses a null address in MPI_Exscan on rank 0 as well, which gets nothing there.
bool CollectiveCall::allocate() {
  const std::size_t room = spec_.collective == Collective::exscan ? spec_.bytes : output_bytes();
  return reserve(input_, input_bytes()) && reserve(output_, room);
}

bool CollectiveCall::reserve(Memory& memory, std::size_t bytes) const {
  if (bytes == 0) return true;
  if (spec_.buffers == BufferKind::ordinary) {
    memory.reset(static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow)));
    return memory != nullptr;
  }
  void* allocation = nullptr;
  // A failure ends the job (MPI_ERRORS_ARE_FATAL).
  MPI_Alloc_mem(static_cast<MPI_Aint>(bytes + line_bytes), MPI_INFO_NULL, &allocation);
  const auto address = round_up(reinterpret_cast<std::uintptr_t>(allocation), line_bytes);
  memory = Memory(reinterpret_cast<std::byte*>(address), Release{static_cast<std::byte*>(allocation)});
  return true;
}

std::size_t CollectiveCall::input_bytes() const {
  switch (spec_.collective) {
    case Collective::barrier:
    case Collective::bcast:  // has one buffer, which is the output
      return 0;
    case Collective::scatter:
    case Collective::scatterv:
      return rank_ == spec_.root ? spec_.bytes * static_cast<std::size_t>(ranks_) : 0;
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw:
      return spec_.bytes * static_cast<std::size_t>(ranks_);
    default:
      return spec_.bytes;
  }
}

std::size_t CollectiveCall::output_bytes() const {
  const std::size_t all = spec_.bytes * static_cast<std::size_t>(ranks_);
  switch (spec_.collective) {
    case Collective::reduce:
      return rank_ == spec_.root ? spec_.bytes : 0;
    case Collective::gather:
    case Collective::gatherv:
      return rank_ == spec_.root ? all : 0;
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::alltoall:
    case Collective::alltoallv:
    case Collective::alltoallw:
      return all;
    case Collective::exscan:
      return rank_ > 0 ? spec_.bytes : 0;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      return static_cast<std::size_t>(counts_[rank_]) * sizeof(Element);
    default:
      return spec_.bytes;
  }
}

std::uint64_t CollectiveCall::message_key(int source, int destination) const {
  return mixed(mixed(key_ + static_cast<std::uint64_t>(source)) + static_cast<std::uint64_t>(destination));
}

void CollectiveCall::prepare(std::uint64_t key) {
  key_ = mixed(key);
  if (output_) std::memset(output_.get(), 0xa5, output_bytes());
  if (sums(spec_.collective)) {
    fill_terms(input_.get(), spec_.bytes / sizeof(Element), key_, rank_);
  } else {
    fill_messages();
  }
}

void CollectiveCall::fill_messages() {
  if (spec_.collective == Collective::bcast) {
    if (rank_ == spec_.root) fill_message(output_.get(), spec_.bytes, message_key(rank_, 0));
    return;
  }
  const bool one_for_each = from_root_to_each(spec_.collective) || to_all(spec_.collective);
  for (std::size_t begin = 0; begin < input_bytes(); begin += spec_.bytes) {
    const int destination = one_for_each ? static_cast<int>(begin / spec_.bytes) : 0;
    fill_message(input_.get() + begin, spec_.bytes, message_key(rank_, destination));
  }
}

void CollectiveCall::run() {
  const MPI_Comm world = MPI_COMM_WORLD;
  const void* in = input_.get();
  void* out = output_.get();
  const int n = count_, root = spec_.root;
  switch (spec_.collective) {
    case Collective::barrier:
      MPI_Barrier(world);
      break;
    case Collective::bcast:
      MPI_Bcast(out, n, MPI_BYTE, root, world);
      break;
    case Collective::reduce:
      MPI_Reduce(in, out, n, MPI_INT32_T, MPI_SUM, root, world);
      break;
    case Collective::allreduce:
      MPI_Allreduce(in, out, n, MPI_INT32_T, MPI_SUM, world);
      break;
    case Collective::allgather:
      MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, world);
      break;
    case Collective::allgatherv:
      MPI_Allgatherv(in, n, MPI_BYTE, out, counts_.data(), displacements_.data(), MPI_BYTE, world);
      break;
    case Collective::gather:
      MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, root, world);
      break;
    case Collective::scatter:
      MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, root, world);
      break;
    case Collective::alltoall:
      MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, world);
      break;
    case Collective::reduce_scatter_block:
      MPI_Reduce_scatter_block(in, out, n, MPI_INT32_T, MPI_SUM, world);
      break;
    case Collective::reduce_scatter:
      MPI_Reduce_scatter(in, out, counts_.data(), MPI_INT32_T, MPI_SUM, world);
      break;
    default:
      run_newer();
  }
}

// Those that no plans are made for.
void CollectiveCall::run_newer() {
  const MPI_Comm world = MPI_COMM_WORLD;
  const void* in = input_.get();
  void* out = output_.get();
  const int n = count_, root = spec_.root;
  const int *counts = counts_.data(), *places = displacements_.data();
  switch (spec_.collective) {
    case Collective::alltoallv:
      MPI_Alltoallv(in, counts, places, MPI_BYTE, out, counts, places, MPI_BYTE, world);
      break;
    case Collective::alltoallw: {
      const std::vector<MPI_Datatype> types(counts_.size(), MPI_BYTE);
      MPI_Alltoallw(in, counts, places, types.data(), out, counts, places, types.data(), world);
      break;
    }
    case Collective::gatherv:
      MPI_Gatherv(in, n, MPI_BYTE, out, counts, places, MPI_BYTE, root, world);
      break;
    case Collective::scatterv:
      MPI_Scatterv(in, counts, places, MPI_BYTE, out, n, MPI_BYTE, root, world);
      break;
    case Collective::scan:
      MPI_Scan(in, out, n, MPI_INT32_T, MPI_SUM, world);
      break;
    case Collective::exscan:
      MPI_Exscan(in, out, n, MPI_INT32_T, MPI_SUM, world);
      break;
    default:
      break;
  }
}

std::optional<std::size_t> CollectiveCall::first_wrong_byte() const {
  if (!output_) return std::nullopt;
  return sums(spec_.collective) ? first_wrong_sum_byte() : first_wrong_message_byte();
}

std::optional<std::size_t> CollectiveCall::first_wrong_message_byte() const {
  const bool from_root = spec_.collective == Collective::bcast || from_root_to_each(spec_.collective);
  const bool one_for_each = from_root_to_each(spec_.collective) || to_all(spec_.collective);
  for (std::size_t begin = 0; begin < output_bytes(); begin += spec_.bytes) {
    const int source = from_root ? spec_.root : static_cast<int>(begin / spec_.bytes);
    const std::uint64_t key = message_key(source, one_for_each ? rank_ : 0);
    if (const auto wrong = first_wrong_byte_of(output_.get() + begin, spec_.bytes, key)) return begin + *wrong;
  }
  return std::nullopt;
}

std::optional<std::size_t> CollectiveCall::first_wrong_sum_byte() const {
  const bool prefix = sums_prefixes(spec_.collective);
  const int summed = prefix ? rank_ + (spec_.collective == Collective::scan ? 1 : 0) : ranks_;
  const Element weights = sum_of_weights(summed);
  const auto first = static_cast<std::size_t>(scatters_sums(spec_.collective) ? displacements_[rank_] : 0);
  const std::size_t elements = output_bytes() / sizeof(Element);
  for (std::size_t index = 0; index < elements; ++index) {
    const Term term = term_at(key_, first + index);
    const Element expected = term.base * summed + term.step * weights;
    Element actual;
    std::memcpy(&actual, output_.get() + index * sizeof actual, sizeof actual);
    if (actual != expected) return index * sizeof actual;
  }
  return std::nullopt;
}

}  // namespace plait::tuner
