// Reads a user's JSON strictly, member by member. For .cpp files only: the JSON library takes long to compile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "core/status.h"
#include "plan/model/fingerprint.h"

namespace plait::plan {

// The document, or where it is no JSON. Values more than `deepest` levels deep are refused before they take memory.
Result<Json> parse_json(std::string_view text, int deepest);

// "levels[1].name: expected a name".
Status unexpected(const std::string& where, const std::string& expected);

// The members of one object, read in turn; the first that is wrong stays in status(). `prefix` says where the object
// stands: "levels[1].", or nothing for the document. The object must outlive this.
class JsonMembers {
 public:
  JsonMembers(const Json& object, std::string prefix);

  // A member that is absent leaves the value as it is; text, bytes, version and lists are required.
  JsonMembers& text(const char* member, std::string& value);  // not empty
  JsonMembers& bytes(const char* member, std::size_t& value);
  JsonMembers& version(const char* member, int wanted);
  JsonMembers& count(const char* member, int& value, int most);  // 1 or more
  JsonMembers& flag(const char* member, bool& value);
  JsonMembers& seconds(const char* member, double& value);
  // A rate becomes its inverse; 0 means that there is no limit, and so does its inverse.
  JsonMembers& rate(const char* member, double& seconds_per_byte);
  JsonMembers& positive(const char* member, double& value);
  JsonMembers& duplex(const char* member, bool& half);
  JsonMembers& fingerprint(const char* member, Fingerprint& value);
  // Nullptr where there is none of 1 to `most` entries.
  const Json* list(const char* member, std::size_t most, const std::string& of_what);
  // Whatever stands there; nullptr where there is none.
  const Json* any(const char* member);

  const Status& status() const { return status_; }
  // Call last: whatever was not asked for is unknown.
  Status finish();

 private:
  const Json* take(const char* member);
  JsonMembers& fail(const std::string& member, const std::string& expected);

  const Json& object_;
  std::string prefix_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace plait::plan
