// What a recording keeps of a program's calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/model/collective.h"
#include "plan/model/form.h"
#include "runtime/layer.h"

namespace plait::runtime {

// What makes two calls the same one, but for their size. Texts are interned.
struct CallKind {
  Collective collective = Collective::barrier;
  Form form = Form::blocking;
  int communicator = 0;  // its number in this process's recording
  const char* type = "";
  const char* op = "";
  const void* site = nullptr;  // where the program's code goes on after the call

  friend bool operator==(const CallKind&, const CallKind&) = default;
};

// Nanoseconds of a clock that only goes up.
struct Span {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint64_t length_ns() const { return end_ns - begin_ns; }
};

// Of something that comes again and again.
struct Measured {
  std::uint64_t count = 0, sum = 0, least = ~std::uint64_t{0}, most = 0;

  void add(std::uint64_t value) {
    ++count;
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  double mean() const { return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count); }
};

}  // namespace plait::runtime
