// The PMPI tools that were loaded behind libplait.so.
#pragma once

#include <array>
#include <cstdint>

#include "plugin/preload/implementation.h"

namespace plait::preload {

static_assert(function_count <= 64);  // bits of detail::inside

namespace detail {
extern constinit std::array<void*, function_count> tools;
extern thread_local constinit std::uint64_t inside __attribute__((tls_model("initial-exec")));
}  // namespace detail

// The MPI_ function of a PMPI tool that was loaded behind us, while it runs; its call of the PMPI_ function comes back
// to us. nullptr when there is none, or when the tool itself called us, which must not bring us back to it.
class ToolCall {
 public:
  explicit ToolCall(Function function) : bit_(std::uint64_t{1} << static_cast<unsigned>(function)) {
    void* behind = detail::tools[static_cast<std::size_t>(function)];
    if (behind == nullptr || (detail::inside & bit_) != 0) return;
    detail::inside |= bit_;
    tool_ = behind;
  }
  ~ToolCall() {
    if (tool_ != nullptr) detail::inside &= ~bit_;
  }
  ToolCall(const ToolCall&) = delete;
  ToolCall& operator=(const ToolCall&) = delete;
  void* tool() const { return tool_; }

 private:
  std::uint64_t bit_;
  void* tool_ = nullptr;
};

}  // namespace plait::preload
