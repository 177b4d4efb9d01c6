// A user-defined operator that looks at the addresses of its operands: as those of the host's would be, whatever way
// the data takes. Aligned loads of 16-byte elements (__float128, SSE) end the job anywhere else.
//   preload_operator_alignment [mpi]      the program's buffers come from MPI_Alloc_mem, else from malloc
// Prints "aligned" on rank 0, or a line that begins with "wrong:".
#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

constexpr std::size_t host_alignment = 16;

int rank = 0, ranks = 1, failures = 0;
bool shared_buffers = false;

// ---- The operator: sums of 64-bit words ----

// What the calls of the collective under way have.
struct Expected {
  std::size_t data = 0, extent = 0;  // bytes of an element, and to the next
  int whole = 0;                     // elements of the vector; 0: no operand is a whole vector
};
Expected expected;
std::size_t calls = 0;

void check_operand(const void* operand, int count, const char* which) {
  // A vector may be cut at any element, but where it begins it is as malloc's.
  const std::size_t element = std::size_t{1} << std::countr_zero(expected.extent);
  const std::size_t alignment = count == expected.whole ? host_alignment : std::min(element, host_alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(operand);
  if (address % alignment == 0 || ++failures > 5) return;
  std::printf("wrong: %s of %d elements of %zu bytes at %zu modulo 64, not at a multiple of %zu\n", which, count,
              expected.extent, static_cast<std::size_t>(address % 64), alignment);
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  ++calls;
  check_operand(in, *count, "left operand");
  check_operand(inout, *count, "right operand");
  for (int i = 0; i < *count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * expected.extent;
    for (std::size_t byte = 0; byte < expected.data; byte += sizeof(std::uint64_t)) {
      std::uint64_t left = 0, right = 0;
      std::memcpy(&left, static_cast<char*>(in) + at + byte, sizeof left);
      std::memcpy(&right, static_cast<char*>(inout) + at + byte, sizeof right);
      right += left;
      std::memcpy(static_cast<char*>(inout) + at + byte, &right, sizeof right);
    }
  }
}

// ---- Types and buffers ----

struct Type {
  std::size_t data, extent;
  MPI_Datatype handle = MPI_DATATYPE_NULL;

  Type(std::size_t data_bytes, std::size_t extent_bytes) : data(data_bytes), extent(extent_bytes) {
    MPI_Datatype dense = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(data), MPI_BYTE, &dense);
    MPI_Type_create_resized(dense, 0, static_cast<MPI_Aint>(extent), &handle);
    MPI_Type_free(&dense);
    MPI_Type_commit(&handle);
  }
  ~Type() { MPI_Type_free(&handle); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
};

// Begins at an odd multiple of 16 bytes, as the blocks of most allocators do; `shift` bytes behind that.
class Buffer {
 public:
  Buffer(const Type& type, std::size_t elements, std::size_t shift = 0) : type_(&type) {
    const std::size_t bytes = elements * type.extent + 128;
    if (shared_buffers)
      MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &block_);
    else
      block_ = std::malloc(bytes);
    const auto address = reinterpret_cast<std::uintptr_t>(block_);
    data_ = static_cast<char*>(block_) + ((address + 63) / 64 * 64 - address) + 16 + shift;
    std::memset(data_, 0, elements * type.extent);
  }
  ~Buffer() {
    if (shared_buffers)
      MPI_Free_mem(block_);
    else
      std::free(block_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() { return data_; }
  std::uint64_t word(std::size_t element, std::size_t index) const {
    std::uint64_t value = 0;
    std::memcpy(&value, data_ + element * type_->extent + index * sizeof value, sizeof value);
    return value;
  }
  void set_word(std::size_t element, std::size_t index, std::uint64_t value) {
    std::memcpy(data_ + element * type_->extent + index * sizeof value, &value, sizeof value);
  }

 private:
  const Type* type_;
  void* block_ = nullptr;
  char* data_ = nullptr;
};

// What rank `from` gives.
std::uint64_t operand(int from, std::size_t element, std::size_t index) {
  return static_cast<std::uint64_t>(from + 1) * 1'000'003 + element * 31 + index;
}

void fill(Buffer& buffer, const Type& type, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i)
    for (std::size_t word = 0; word < type.data / 8; ++word) buffer.set_word(i, word, operand(rank, i, word));
}

// The first `elements` of `buffer` are the sums over the first `givers` ranks of the elements from `first` on.
void check_sums(const char* what, const Buffer& buffer, const Type& type, std::size_t first, std::size_t elements,
                int givers) {
  for (std::size_t i = 0; i < elements; ++i)
    for (std::size_t word = 0; word < type.data / 8; ++word) {
      std::uint64_t sum = 0;
      for (int from = 0; from < givers; ++from) sum += operand(from, first + i, word);
      if (buffer.word(i, word) == sum || ++failures > 5) continue;
      std::printf("wrong: %s of elements of %zu bytes: element %zu\n", what, type.extent, i);
      return;
    }
}

// ---- The collectives ----

void all_reduces(const Type& type, int count, MPI_Op op) {
  const auto elements = static_cast<std::size_t>(count);
  Buffer from(type, elements), to(type, elements);
  fill(from, type, elements);
  expected = {type.data, type.extent, count};
  MPI_Allreduce(from.data(), to.data(), count, type.handle, op, MPI_COMM_WORLD);
  check_sums("allreduce", to, type, 0, elements, ranks);
  MPI_Allreduce(MPI_IN_PLACE, from.data(), count, type.handle, op, MPI_COMM_WORLD);
  check_sums("allreduce in place", from, type, 0, elements, ranks);
}

// Who is not the root may have its data anywhere, as far as the operator is concerned that runs at the root: in a tree
// of two ranks no host calls it elsewhere. Elements with an alignment of their own find it all the same.
void reduces(const Type& type, int count, MPI_Op op) {
  const auto elements = static_cast<std::size_t>(count);
  for (const int root : {0, ranks - 1}) {
    const bool shifted = rank != root && type.extent % host_alignment == 0;
    Buffer from(type, elements, shifted ? 8 : 0), to(type, elements);
    fill(from, type, elements);
    expected = {type.data, type.extent, count};
    MPI_Reduce(from.data(), to.data(), count, type.handle, op, root, MPI_COMM_WORLD);
    if (rank == root) check_sums("reduce", to, type, 0, elements, ranks);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : from.data(), from.data(), count, type.handle, op, root, MPI_COMM_WORLD);
    if (rank == root) check_sums("reduce in place", from, type, 0, elements, ranks);
  }
}

void reduce_scatters(const Type& type, int count, MPI_Op op) {
  std::vector<int> counts(static_cast<std::size_t>(ranks));
  for (int to = 0; to < ranks; ++to) counts[static_cast<std::size_t>(to)] = count / ranks + (to % 2 == 0 ? to : 0);
  const std::size_t before = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.begin() + rank, 0));
  const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
  const auto all = static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0));
  Buffer from(type, all + static_cast<std::size_t>(ranks)), to(type, own + 1);
  fill(from, type, all + static_cast<std::size_t>(ranks));
  expected = {type.data, type.extent, 0};
  MPI_Reduce_scatter(from.data(), to.data(), counts.data(), type.handle, op, MPI_COMM_WORLD);
  check_sums("reduce_scatter", to, type, before, own, ranks);
  const int each = count / ranks + 1;
  Buffer block(type, static_cast<std::size_t>(each) * static_cast<std::size_t>(ranks)),
      piece(type, static_cast<std::size_t>(each));
  fill(block, type, static_cast<std::size_t>(each) * static_cast<std::size_t>(ranks));
  MPI_Reduce_scatter_block(block.data(), piece.data(), each, type.handle, op, MPI_COMM_WORLD);
  check_sums("reduce_scatter_block", piece, type, static_cast<std::size_t>(each * rank), static_cast<std::size_t>(each),
             ranks);
}

void scans(const Type& type, int count, MPI_Op op) {
  const auto elements = static_cast<std::size_t>(count);
  Buffer from(type, elements), to(type, elements);
  fill(from, type, elements);
  expected = {type.data, type.extent, count};
  MPI_Scan(from.data(), to.data(), count, type.handle, op, MPI_COMM_WORLD);
  check_sums("scan", to, type, 0, elements, rank + 1);
  MPI_Exscan(from.data(), to.data(), count, type.handle, op, MPI_COMM_WORLD);
  if (rank > 0) check_sums("exscan", to, type, 0, elements, rank);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  shared_buffers = argc > 1 && std::strcmp(argv[1], "mpi") == 0;
  {
    // Dense, and with a gap behind each element, so that operands are unpacked.
    const Type types[] = {{8, 8}, {16, 16}, {24, 24}, {32, 32}, {48, 48}, {24, 32}};
    for (const bool commutes : {true, false}) {
      MPI_Op op = MPI_OP_NULL;
      MPI_Op_create(add, commutes ? 1 : 0, &op);
      for (const Type& type : types)
        for (const int count : {1, 2, 3, 7, 100, 1365, 5001, 40'003}) {
          all_reduces(type, count, op);
          if (count > 20'000) continue;
          reduces(type, count, op);
          reduce_scatters(type, count, op);
          scans(type, count, op);
        }
      MPI_Op_free(&op);
    }
  }
  if (calls == 0 && rank == 0) ++failures;
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) std::printf("aligned\n");
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
