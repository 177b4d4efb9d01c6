// Expected failures as values: a code and one message that names the thing and what was expected.
#pragma once

#include <new>
#include <string>
#include <utility>
#include <variant>

namespace plait {

enum class Code {
  ok,
  invalid,      // the caller or a file gave something that cannot be used
  unsupported,  // legal, but not done here
  unavailable,  // the machine lacks it (no device, no permission, no space)
  peer_failed,  // a transfer to or from another rank failed
  peer_left,    // another rank cut its connection: it has failed, and may know better why
  internal,     // a defect of this library
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  // Throws nothing: without memory for the text it says so instead.
  Status(Code code, const char* message) noexcept : code_(code) {
    try {
      message_ = message;
    } catch (const std::bad_alloc&) {
      message_ = "out of memory";  // short enough for a string without memory of its own
    }
  }

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::ok;
  std::string message_;
};

// Either a T or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : content_(std::in_place_index<1>, std::move(status)) {}
  Result(Code code, std::string message) : Result(Status(code, std::move(message))) {}

  bool ok() const { return content_.index() == 0; }
  // Precondition for value(): ok().
  T& value() & { return std::get<0>(content_); }
  const T& value() const& { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  Status status() const { return ok() ? Status() : std::get<1>(content_); }

 private:
  std::variant<T, Status> content_;
};

}  // namespace plait
