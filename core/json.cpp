#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <new>

namespace plait::detail {
namespace {

// Used again from its begin when nothing of it is in use: values are destroyed one after the other.
struct Spare {
  std::mutex guard;
  std::size_t taken = 0, uses = 0;
  alignas(std::max_align_t) std::array<std::byte, std::size_t{1} << 20> bytes{};

  bool holds(const void* place) const {
    const std::less<const void*> before;
    return !before(place, bytes.data()) && before(place, bytes.data() + bytes.size());
  }
};
constinit Spare spare;

void* take_spare(std::size_t bytes) {
  const std::scoped_lock lock(spare.guard);
  constexpr std::size_t unit = alignof(std::max_align_t);
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded > spare.bytes.size() - spare.taken) return nullptr;
  void* place = spare.bytes.data() + spare.taken;
  spare.taken += rounded;
  ++spare.uses;
  return place;
}

}  // namespace

void* json_stack(std::size_t bytes) {
  if (void* place = ::operator new(bytes, std::nothrow)) return place;
  if (void* place = take_spare(bytes)) return place;
  throw std::bad_alloc();
}

void release_json_stack(void* stack) noexcept {
  if (!spare.holds(stack)) return ::operator delete(stack);
  const std::scoped_lock lock(spare.guard);
  if (--spare.uses == 0) spare.taken = 0;
}

}  // namespace plait::detail
