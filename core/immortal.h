// What is made at its first use and never destroyed, as calls may come until the process ends. Needs no memory beside
// its own, so that there is none to be short of.
#pragma once

#include <cstddef>
#include <new>

namespace plait {

// static Immortal<Registry> one; return *one;
template <class T>
class Immortal {
 public:
  Immortal() { new (static_cast<void*>(bytes_)) T(); }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;
  T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

}  // namespace plait
