// The PMPI tools that were loaded behind libplait.so.
#pragma once

#include <array>
#include <cstddef>

#include "plugin/preload/implementation.h"

namespace plait::plugin::preload {

namespace detail {
extern constinit std::array<void*, function_count> tools;
// By function: the tool's is running.
extern thread_local constinit std::array<bool, function_count> inside __attribute__((tls_model("initial-exec")));
}  // namespace detail

// The MPI_ function of a PMPI tool that was loaded behind us, while it runs; its call of the PMPI_ function comes back
// to us. nullptr when there is none, or when the tool itself called us, which must not bring us back to it.
class ToolCall {
 public:
  explicit ToolCall(Function function) : index_(static_cast<std::size_t>(function)) {
    void* behind = detail::tools[index_];
    if (behind == nullptr || detail::inside[index_]) return;
    detail::inside[index_] = true;
    tool_ = behind;
  }
  ~ToolCall() {
    if (tool_ != nullptr) detail::inside[index_] = false;
  }
  ToolCall(const ToolCall&) = delete;
  ToolCall& operator=(const ToolCall&) = delete;
  void* tool() const { return tool_; }

 private:
  std::size_t index_;
  void* tool_ = nullptr;
};

}  // namespace plait::plugin::preload
