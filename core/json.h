// nlohmann's JSON where the job's processes use it. Its values need memory to be destroyed, in a function that must not
// throw: where memory is short, that would end the process. Here they take it from a megabyte that is kept for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plait {

template <class T>
struct JsonAllocator : std::allocator<T> {
  template <class Other>
  struct rebind {
    using other = JsonAllocator<Other>;
  };
  JsonAllocator() = default;
  template <class Other>
  JsonAllocator(const JsonAllocator<Other>&) noexcept {}
};

template <template <class, class, class...> class Object>
using JsonOf = nlohmann::basic_json<Object, std::vector, std::string, bool, std::int64_t, std::uint64_t, double,
                                    JsonAllocator>;
using Json = JsonOf<nlohmann::ordered_map>;  // members in the order in which they were added
using SortedJson = JsonOf<std::map>;

namespace detail {

void* json_stack(std::size_t bytes);  // throws where the spare memory is used up as well
void release_json_stack(void* stack) noexcept;

// Of the stack on which a value's parts wait for their destruction: a vector with the standard allocator, where
// those of the values themselves have JsonAllocator.
template <class T>
struct JsonStackAllocator {
  using value_type = T;
  JsonStackAllocator() = default;
  template <class Other>
  explicit JsonStackAllocator(const JsonStackAllocator<Other>&) noexcept {}
  T* allocate(std::size_t count) { return static_cast<T*>(json_stack(count * sizeof(T))); }
  void deallocate(T* stack, std::size_t) noexcept { release_json_stack(stack); }
  bool operator==(const JsonStackAllocator&) const = default;
};

}  // namespace detail
}  // namespace plait

// The types are the program's own by their allocator, so that it may say what the standard allocator does for them.
template <>
struct std::allocator<plait::Json> : plait::detail::JsonStackAllocator<plait::Json> {
  using JsonStackAllocator::JsonStackAllocator;
};
template <>
struct std::allocator<plait::SortedJson> : plait::detail::JsonStackAllocator<plait::SortedJson> {
  using JsonStackAllocator::JsonStackAllocator;
};
