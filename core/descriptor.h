// An open file's number, closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace plait {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}  // -1: none
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  // The caller's from now on.
  int release() { return std::exchange(number_, -1); }
  // What was written may fail to reach the disk only here.
  bool close_now() { return close(release()) == 0; }

 private:
  int number_;
};

}  // namespace plait
