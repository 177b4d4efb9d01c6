#include "runtime/execution/caller.h"

namespace plait::runtime {

constinit const Caller* detail::caller = nullptr;

void install_caller(const Caller& caller) { detail::caller = &caller; }

Status pack_error(int code) {
  return {Code::internal, "could not pack or unpack the data: " + caller().status_of(code).message()};
}

}  // namespace plait::runtime
