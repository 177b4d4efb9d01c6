// What a call's arguments say of its data, whoever calls.
//
// The functions of this folder that are called prepare_... read the arguments of a collective: they fill the request,
// whose call.collective and lists are set, touching only what is significant on this rank. They return nullptr, or why
// the call is not eligible: the same on all ranks, unless a rank's arguments are wrong. They may throw std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/execution/communicator.h"
#include "runtime/job/reasons.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::runtime {

// Why a call is not eligible. A rank whose arguments are wrong hands them to the host alone, which is the error that
// the program then sees; all other reasons are the same on all ranks.
inline constexpr const char* eligible = nullptr;

// In place of an address: the data lie in the call's other side. No data lie at such an address.
inline constexpr std::uintptr_t in_place_address = 1;
inline const void* in_place() { return reinterpret_cast<const void*>(in_place_address); }
inline bool is_in_place(const void* address) { return reinterpret_cast<std::uintptr_t>(address) == in_place_address; }

// A null address, to which displacements may be added all the same, is that of layouts which hold addresses themselves.
inline std::byte* displaced(const void* base, std::ptrdiff_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(base) + bytes);
}

inline bool is_rank(int rank, const Communicator& communicator) { return rank >= 0 && rank < communicator.ranks; }

struct Elements {
  const void* address = nullptr;
  std::ptrdiff_t count = 0;
  const Layout* layout = nullptr;  // nullptr: the caller must check the type, or the data lie in place
};

}  // namespace plait::runtime
