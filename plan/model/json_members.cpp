#include "plan/model/json_members.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace plait::plan {
namespace {

constexpr std::size_t most_fingerprint_entries = 32, longest_fingerprint_text = 256;

bool is_amount(const Json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
}

}  // namespace

Status unexpected(const std::string& where, const std::string& expected) {
  return {Code::invalid, where + ": expected " + expected};
}

Result<Json> parse_json(std::string_view text, int deepest) {
  struct TooDeep : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const auto look = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest) throw TooDeep("nested more than " + std::to_string(deepest) + " levels deep");
    return true;
  };
  try {
    return Json::parse(text, look);
  } catch (const Json::exception& error) {
    return {Code::invalid, std::string("expected JSON: ") + error.what()};
  } catch (const TooDeep& error) {
    return {Code::invalid, error.what()};
  }
}

JsonMembers::JsonMembers(const Json& object, std::string prefix) : object_(object), prefix_(std::move(prefix)) {
  if (!object.is_object()) fail("", "an object");
}

JsonMembers& JsonMembers::text(const char* member, std::string& value) {
  const Json* found = take(member);
  if (!found) return fail(member, "a name; it is missing");
  if (!found->is_string() || found->get_ref<const std::string&>().empty()) return fail(member, "a name");
  value = found->get<std::string>();
  return *this;
}

JsonMembers& JsonMembers::bytes(const char* member, std::size_t& value) {
  const Json* found = take(member);
  if (!found || !found->is_number_unsigned() || found->get<std::uint64_t>() > std::uint64_t{1} << 62)
    return fail(member, "a whole number of bytes, 0 or more");
  value = found->get<std::size_t>();
  return *this;
}

JsonMembers& JsonMembers::version(const char* member, int wanted) {
  const Json* found = take(member);
  if (!found || !found->is_number_integer() || *found != wanted) return fail(member, std::to_string(wanted));
  return *this;
}

JsonMembers& JsonMembers::count(const char* member, int& value, int most) {
  const Json* found = take(member);
  if (!found) return *this;
  if (!found->is_number_integer() || *found < 1 || *found > most)
    return fail(member, "a whole number from 1 to " + std::to_string(most));
  value = found->get<int>();
  return *this;
}

JsonMembers& JsonMembers::flag(const char* member, bool& value) {
  const Json* found = take(member);
  if (!found) return *this;
  if (!found->is_boolean()) return fail(member, "true or false");
  value = found->get<bool>();
  return *this;
}

JsonMembers& JsonMembers::seconds(const char* member, double& value) {
  const Json* found = take(member);
  if (!found) return *this;
  if (!is_amount(*found)) return fail(member, "a number of seconds, 0 or more");
  value = found->get<double>();
  return *this;
}

JsonMembers& JsonMembers::rate(const char* member, double& seconds_per_byte) {
  const Json* found = take(member);
  if (!found) return *this;
  const double rate = is_amount(*found) ? found->get<double>() : -1;
  if (rate < 0 || (rate > 0 && !std::isnormal(1 / rate))) return fail(member, "bytes a second, or 0 for no limit");
  seconds_per_byte = rate > 0 ? 1 / rate : 0;
  return *this;
}

JsonMembers& JsonMembers::positive(const char* member, double& value) {
  const Json* found = take(member);
  if (!found) return *this;
  if (!is_amount(*found) || found->get<double>() <= 0) return fail(member, "a positive number");
  value = found->get<double>();
  return *this;
}

JsonMembers& JsonMembers::duplex(const char* member, bool& half) {
  const Json* found = take(member);
  if (!found) return *this;
  if (*found != "full" && *found != "half") return fail(member, "\"full\" or \"half\"");
  half = *found == "half";
  return *this;
}

JsonMembers& JsonMembers::fingerprint(const char* member, Fingerprint& value) {
  const Json* found = take(member);
  if (!found) return *this;
  const std::string expected = "an object of at most 32 names with texts of at most 256 bytes";
  if (!found->is_object() || found->size() > most_fingerprint_entries) return fail(member, expected);
  for (const auto& [name, entry] : found->items()) {
    if (!entry.is_string() || name.size() > longest_fingerprint_text ||
        entry.get_ref<const std::string&>().size() > longest_fingerprint_text)
      return fail(member, expected);
    value[name] = entry.get<std::string>();
  }
  return *this;
}

const Json* JsonMembers::any(const char* member) { return take(member); }

const Json* JsonMembers::list(const char* member, std::size_t most, const std::string& of_what) {
  const Json* found = take(member);
  if (found && found->is_array() && !found->empty() && found->size() <= most) return found;
  fail(member, "a list of 1 to " + std::to_string(most) + ' ' + of_what);
  return nullptr;
}

Status JsonMembers::finish() {
  if (!status_.ok() || !object_.is_object()) return status_;
  for (const auto& [member, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), member) == known_.end()) {
      std::string list;
      for (const std::string& name : known_) list += (list.empty() ? "" : ", ") + name;
      return unexpected(prefix_ + "\"" + member + "\" is no member", "one of " + list);
    }
  }
  return {};
}

const Json* JsonMembers::take(const char* member) {
  known_.emplace_back(member);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(member);
  return found == object_.end() ? nullptr : &*found;
}

JsonMembers& JsonMembers::fail(const std::string& member, const std::string& expected) {
  const std::string whole = prefix_.empty() ? "the document" : prefix_.substr(0, prefix_.size() - 1);
  if (status_.ok()) status_ = unexpected(member.empty() ? whole : prefix_ + member, expected);
  return *this;
}

}  // namespace plait::plan
