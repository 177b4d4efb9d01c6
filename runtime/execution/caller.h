// What the runtime asks of whoever brings the calls, once for the process: a binding of an MPI, or a test. The codes
// are the caller's own, for what its functions return to the program; 0: nothing is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/types/layout.h"

namespace plait::runtime {

// An operator of the program's own, by what the caller calls it.
enum class OperatorHandle : std::uintptr_t {};

struct Caller {
  // `count` elements that have gaps, between their place in memory and the form in which data travels: one, or as many
  // as have no more than `most_bytes`. Return a code; may throw std::bad_alloc.
  int (*pack)(const std::byte* from, std::size_t count, const Layout& layout, std::byte* packed) = nullptr;
  int (*unpack)(std::byte* to, std::size_t count, const Layout& layout, const std::byte* packed) = nullptr;
  std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
  // Combines elements by an operator of the program's own: into = from op into. Returns a code.
  int (*combine)(OperatorHandle op, const void* from, void* into, std::size_t count, const Layout& layout) = nullptr;
  // The data of one element in the order in which they are packed. Throws where memory is short.
  std::vector<ByteRun> (*runs)(const Layout& layout) = nullptr;

  // Between failures and codes.
  int (*code_of)(const Status& failure) = nullptr;
  Status (*status_of)(int code) = nullptr;
  int truncated = 1;  // more data has come than there is room for
};

namespace detail {
extern constinit const Caller* caller;
}

// Precondition: there is one.
inline const Caller& caller() { return *detail::caller; }
// Before the first call; `caller` lives for ever.
void install_caller(const Caller& caller);

// What is said of data that could not be brought to where the engine works on them.
Status pack_error(int code);

}  // namespace plait::runtime
