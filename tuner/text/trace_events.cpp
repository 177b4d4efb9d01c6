#include "tuner/text/trace_events.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace plait::tuner {
namespace {

using nlohmann::json;

constexpr int deepest = 8;
constexpr std::int64_t most_number = (std::int64_t{1} << 31) - 1;

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const json* find(const json& object, const char* member) {
  const auto found = object.find(member);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

TraceEvent::TraceEvent(const json& object, std::size_t index)
    : object_(object), place_("traceEvents[" + std::to_string(index) + "]") {
  if (!object.is_object()) refuse("", "an object");
}

std::string TraceEvent::text(const char* member) const {
  const json* found = find(object_, member);
  if (found == nullptr || !found->is_string()) refuse(member, "a text");
  return found->get<std::string>();
}

std::int64_t TraceEvent::whole(const char* member) const { return whole_in(object_, member, ""); }

double TraceEvent::microseconds(const char* member, double least) const {
  const json* found = find(object_, member);
  if (found == nullptr || !found->is_number() || !(std::abs(found->get<double>()) <= most_microseconds) ||
      found->get<double>() < least)
    refuse(member, least == 0 ? "a number of microseconds, 0 or more" : "a number of microseconds");
  return found->get<double>();
}

std::string TraceEvent::argument_text(const char* member) const {
  const json* found = find(arguments(), member);
  if (found == nullptr || !found->is_string()) refuse(std::string("args.") + member, "a text");
  return found->get<std::string>();
}

bool TraceEvent::has_argument(const char* member) const { return find(arguments(), member) != nullptr; }

std::uint64_t TraceEvent::argument_bytes(const char* member) const {
  const json* found = find(arguments(), member);
  if (found == nullptr || !found->is_number_unsigned())
    refuse(std::string("args.") + member, "a whole number of bytes, 0 or more");
  return found->get<std::uint64_t>();
}

std::int64_t TraceEvent::argument_whole(const char* member) const { return whole_in(arguments(), member, "args."); }

bool TraceEvent::is_fused() const {
  const json* found = find(object_, "cat");
  return found != nullptr && *found == "fused";
}

const json& TraceEvent::arguments() const {
  const json* found = find(object_, "args");
  if (found == nullptr || !found->is_object()) refuse("args", "an object");
  return *found;
}

std::int64_t TraceEvent::whole_in(const json& object, const char* member, const char* prefix) const {
  const json* found = find(object, member);
  if (found == nullptr || !found->is_number_unsigned() ||
      found->get<std::uint64_t>() > static_cast<std::uint64_t>(most_number))
    refuse(std::string(prefix) + member, "a whole number, 0 or more");
  return found->get<std::int64_t>();
}

void TraceEvent::refuse(const std::string& member, const std::string& expected) const {
  throw Refused(place_ + (member.empty() ? "" : "." + member) + ": expected " + expected);
}

Status each_event(std::string_view trace, const std::function<void(const TraceEvent&)>& take) {
  std::size_t index = 0;
  std::string key;
  bool any_list = false;
  const auto look = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest) throw Refused("nested more than " + std::to_string(deepest) + " levels deep");
    if (depth == 1 && event == json::parse_event_t::key) key = value.get<std::string>();
    if (key != "traceEvents" || depth == 0) return true;
    if (depth == 1 && event == json::parse_event_t::array_start) any_list = true;
    const bool whole = event == json::parse_event_t::object_end || event == json::parse_event_t::array_end ||
                       event == json::parse_event_t::value;
    if (depth != 2 || !any_list || !whole) return true;
    take(TraceEvent(value, index++));
    return false;
  };
  try {
    const json document = json::parse(trace, look);
    if (!document.is_object() || !any_list) return {Code::invalid, "traceEvents: expected a list"};
  } catch (const json::exception& error) {
    return {Code::invalid, std::string("expected JSON: ") + error.what()};
  } catch (const Refused& refused) {
    return {Code::invalid, refused.what()};
  }
  return {};
}

}  // namespace plait::tuner
