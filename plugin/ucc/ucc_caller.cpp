#include "plugin/ucc/ucc_caller.h"

#include <ucc/api/ucc.h>

namespace plait::plugin {
namespace {

int code_of(const Status& failure) {
  switch (failure.code()) {
    case Code::ok:
      return UCC_OK;
    case Code::invalid:
      return UCC_ERR_INVALID_PARAM;
    case Code::unsupported:
      return UCC_ERR_NOT_SUPPORTED;
    case Code::unavailable:
      return UCC_ERR_NO_RESOURCE;
    case Code::peer_failed:
    case Code::peer_left:
      return UCC_ERR_IO_ERROR;
    default:
      return UCC_ERR_NO_MESSAGE;
  }
}

// Its types are bytes one after the other: nothing is packed, and no operator is the program's own.
constexpr Caller by_ucc = {
    .pack = [](const std::byte*, std::size_t, const Layout&, std::byte*) { return int{UCC_ERR_NOT_SUPPORTED}; },
    .unpack = [](std::byte*, std::size_t, const Layout&, const std::byte*) { return int{UCC_ERR_NOT_SUPPORTED}; },
    .combine = [](OperatorHandle, const void*, void*, std::size_t,
                  const Layout&) { return int{UCC_ERR_NOT_SUPPORTED}; },
    .runs = [](const Layout& layout) -> std::vector<ByteRun> { return {{.begin = 0, .bytes = layout.size}}; },
    .code_of = code_of,
    .status_of = [](int code) { return Status(Code::internal, ucc_status_string(static_cast<ucc_status_t>(code))); },
    .truncated = UCC_ERR_INVALID_PARAM,
};

}  // namespace

const Caller& ucc_caller() { return by_ucc; }

}  // namespace plait::plugin
