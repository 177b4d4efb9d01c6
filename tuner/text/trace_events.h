// The events of a file that PLAIT_TRACE wrote (runtime/report/trace_file.h), in their order. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/status.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

inline constexpr double most_microseconds = 1e15;  // decades

// One entry of "traceEvents", checked as it is read: where something is wrong each_event() ends with that. Used within
// the call that hands it over.
class TraceEvent {
 public:
  TraceEvent(const nlohmann::json& object, std::size_t index);

  std::string text(const char* member) const;
  std::int64_t whole(const char* member) const;
  double microseconds(const char* member, double least) const;
  std::string argument_text(const char* member) const;
  bool has_argument(const char* member) const;
  std::uint64_t argument_bytes(const char* member) const;
  std::int64_t argument_whole(const char* member) const;
  // Of a fused operator's plan, not of a communicator.
  bool is_fused() const;

 private:
  const nlohmann::json& arguments() const;
  std::int64_t whole_in(const nlohmann::json& object, const char* member, const char* prefix) const;
  [[noreturn]] void refuse(const std::string& member, const std::string& expected) const;

  const nlohmann::json& object_;
  std::string place_;
};

// Hands over the events in turn; none of them is kept. Fails (invalid) with what is wrong and where.
Status each_event(std::string_view trace, const std::function<void(const TraceEvent&)>& take);

}  // namespace plait::tuner
