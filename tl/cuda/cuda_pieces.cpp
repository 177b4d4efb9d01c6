#include "tl/cuda/cuda_pieces.h"

#include <cstdint>
#include <numeric>

namespace plait::tl {
namespace {

constexpr int kind_file = 1;                     // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
constexpr int place_device = 1, all_rights = 3;  // CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE

std::size_t bytes_of(std::span<const DevicePiece> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                         [](std::size_t sum, const DevicePiece& piece) { return sum + piece.bytes; });
}

// What is mapped stays without the memory's handle.
Cuda::Outcome map_piece(const Cuda& cuda, Cuda::Address at, const DevicePiece& piece) {
  Cuda::Memory memory = 0;
  auto* file = reinterpret_cast<void*>(static_cast<std::uintptr_t>(piece.file));
  const Cuda::Outcome taken = cuda.memory_from_file(&memory, file, kind_file);
  if (taken != Cuda::success) return taken;
  const Cuda::Outcome mapped = cuda.map_memory(at, piece.bytes, 0, memory, 0);
  cuda.let_memory_go(memory);
  return mapped;
}

// The first `count` of them, and the addresses of all.
void give_up(const Cuda& cuda, Cuda::Address begin, std::span<const DevicePiece> pieces, std::size_t count) {
  Cuda::Address at = begin;
  for (const DevicePiece& piece : pieces.first(count)) {
    cuda.unmap_memory(at, piece.bytes);
    at += piece.bytes;
  }
  cuda.free_addresses(begin, bytes_of(pieces));
}

Cuda::Outcome map_all(const Cuda& cuda, std::span<const DevicePiece> pieces, int device, Cuda::Address& begin) {
  const std::size_t bytes = bytes_of(pieces);
  Cuda::Outcome outcome = cuda.reserve_addresses(&begin, bytes, 0, 0, 0);
  if (outcome != Cuda::success) return outcome;
  std::size_t mapped = 0;
  for (Cuda::Address at = begin; mapped < pieces.size(); ++mapped) {
    outcome = map_piece(cuda, at, pieces[mapped]);
    if (outcome != Cuda::success) break;
    at += pieces[mapped].bytes;
  }
  if (outcome == Cuda::success) {
    const Cuda::Access access{place_device, device, all_rights};
    outcome = cuda.allow_access(begin, bytes, &access, 1);
  }
  if (outcome != Cuda::success) give_up(cuda, begin, pieces, mapped);
  return outcome;
}

}  // namespace

Result<int> share_cuda_memory(const Cuda& cuda, const DeviceMemory& memory) {
  if (cuda.memory_of == nullptr) return {Code::unsupported, "the CUDA driver hands on no files"};
  int file = -1;
  const Cuda::Outcome outcome = CudaContext(cuda, memory.context)
                                    .then([&] {
                                      Cuda::Memory held = 0;
                                      const Cuda::Outcome found =
                                          cuda.memory_of(&held, reinterpret_cast<void*>(memory.begin));
                                      if (found != Cuda::success) return found;
                                      const Cuda::Outcome made = cuda.memory_to_file(&file, held, kind_file, 0);
                                      cuda.let_memory_go(held);
                                      return made;
                                    })
                                    .outcome();
  if (outcome != Cuda::success) return cuda.failure("hand on mapped memory", outcome);
  return file;
}

Result<std::byte*> map_cuda_pieces(const Cuda& cuda, std::span<const DevicePiece> pieces, const DeviceMemory& near) {
  if (cuda.memory_of == nullptr) return {Code::unsupported, "the CUDA driver maps no files"};
  Cuda::Address begin = 0;
  const Cuda::Outcome outcome =
      CudaContext(cuda, near.context).then([&] { return map_all(cuda, pieces, near.device, begin); }).outcome();
  if (outcome != Cuda::success) return cuda.failure("map another process's pieces of memory", outcome);
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(begin));
}

void unmap_cuda_pieces(const Cuda& cuda, std::byte* mapped, std::span<const DevicePiece> pieces,
                       const DeviceMemory& near) {
  CudaContext(cuda, near.context).then([&] {
    give_up(cuda, as_address(mapped), pieces, pieces.size());
    return Cuda::success;
  });
}

}  // namespace plait::tl
