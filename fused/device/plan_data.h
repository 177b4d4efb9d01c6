// The program's memory that a plan is made of, piece by piece: where it lies, and what stands in for it where the
// processor computes with data of a device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/aligned_bytes.h"
#include "core/status.h"
#include "fused/device/device_memory.h"
#include "fused/layer.h"
#include "tl/device/device_memory.h"

namespace plait::fused {

enum class DataWay : std::uint8_t {
  given,    // it is read
  taken,    // all of it is written
  changed,  // some of it is written
};

// Looks at all pieces, or puts others in their places.
class DataVisitor {
 public:
  virtual ~DataVisitor() = default;
  // `unit`: what addresses of its numbers are multiples of, where a device reads them.
  template <class T>
  void operator()(T*& place, std::uint64_t bytes, DataWay way, std::size_t unit = alignof(T)) {
    if (place == nullptr || bytes == 0) return;
    auto* before = reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(place));
    place = reinterpret_cast<T*>(see({before, bytes, way, unit}));
  }

 protected:
  struct Piece {
    std::byte* address;
    std::uint64_t bytes;
    DataWay way;
    std::size_t unit;
  };
  virtual std::byte* see(const Piece& piece) = 0;
};

// Where they lie.
class DataSurvey final : public DataVisitor {
 public:
  bool any() const { return seen_; }
  // Whether some are on a device; whether all are on one, where its kernels can take them.
  bool any_on_device() const { return any_; }
  bool all_on_one_device() const { return any_ && alike_; }
  const DeviceGround& ground() const { return ground_; }

 private:
  std::byte* see(const Piece& piece) override;

  bool any_ = false, alike_ = true, seen_ = false;
  DeviceGround ground_;
};

// The processor's copies of those that are on a device.
class DataMirrors final : public DataVisitor {
 public:
  // What the program gives, before a run; what it takes, after one. They block.
  Status copy_in();
  Status copy_out();

 private:
  // In the shared heap where there is one, so that the node's other ranks can write there.
  struct Release {
    bool shared = false;
    void operator()(std::byte* memory) const;
  };
  struct Mirror {
    std::byte* original;
    std::unique_ptr<std::byte, Release> copy;
    std::uint64_t bytes;
    DataWay way;
    const DeviceDriver* driver;
  };
  // Throws where memory is short.
  std::byte* see(const Piece& piece) override;

  std::vector<Mirror> mirrors_;
};

// Of so many; more than most_given_bytes where no memory has them.
inline constexpr std::size_t most_given_bytes = std::size_t{1} << 47;
template <class T>
std::size_t bytes_of_numbers(std::int64_t count) {
  const auto numbers = static_cast<std::size_t>(count);
  return numbers <= most_given_bytes ? numbers * sizeof(T) : most_given_bytes + 1;
}
Status check_given_bytes(std::size_t bytes);

// What a run is given: where that is on a device, the processor's copies, piece by piece in the order of the calls.
class BroughtData {
 public:
  // Before the first piece of a run.
  void begin() {
    next_ = 0;
    if (!status_.ok()) status_ = {};
  }
  // nullptr where it could not be brought; status() says why.
  template <class T>
  const T* bring(const T* place, std::int64_t count) {
    if (surely_no_driver() || place == nullptr || count <= 0) [[likely]]
      return place;
    return reinterpret_cast<const T*>(
        bring_bytes(reinterpret_cast<const std::byte*>(place), bytes_of_numbers<T>(count)));
  }
  const Status& status() const { return status_; }

 private:
  const std::byte* bring_bytes(const std::byte* place, std::size_t bytes);

  std::vector<AlignedBytes> copies_;
  std::size_t next_ = 0;
  Status status_;
};

}  // namespace plait::fused
