// The tests' own random numbers: the same on every platform and for every rank that asks with the same seed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plait::test {

// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Uniform enough for tests in [0, limit).
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }
  int between(int lowest, int highest) {
    return lowest + static_cast<int>(below(static_cast<std::size_t>(highest - lowest) + 1));
  }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// A seed of its own for each (seed, a, b).
inline std::uint64_t derive(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  return Random(Random(Random(seed).next() ^ a).next() ^ b).next();
}

}  // namespace plait::test
