#include "tl/ucx/ucp_library.h"

#include <dlfcn.h>

#include <array>
#include <csignal>
#include <string>

namespace plait::tl {
namespace {

// UCX handles crashes by default, and does so from its constructors on.
class KeepSignals {
 public:
  KeepSignals() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &before_[i]);
  }
  ~KeepSignals() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array signals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  std::array<struct sigaction, signals.size()> before_{};
};

template <class Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

bool find_all(void* library, UcpLibrary& ucp) {
  return find(library, "ucp_config_read", ucp.config_read) && find(library, "ucp_config_modify", ucp.config_modify) &&
         find(library, "ucp_config_release", ucp.config_release) &&
         find(library, "ucp_init_version", ucp.init_version) && find(library, "ucp_get_version", ucp.get_version) &&
         find(library, "ucp_cleanup", ucp.cleanup) && find(library, "ucp_worker_create", ucp.worker_create) &&
         find(library, "ucp_worker_destroy", ucp.worker_destroy) &&
         find(library, "ucp_worker_get_address", ucp.worker_get_address) &&
         find(library, "ucp_worker_release_address", ucp.worker_release_address) &&
         find(library, "ucp_worker_progress", ucp.worker_progress) &&
         find(library, "ucp_worker_get_efd", ucp.worker_get_efd) && find(library, "ucp_worker_arm", ucp.worker_arm) &&
         find(library, "ucp_ep_create", ucp.ep_create) && find(library, "ucp_ep_close_nbx", ucp.ep_close) &&
         find(library, "ucp_ep_flush_nbx", ucp.ep_flush) && find(library, "ucp_tag_probe_nb", ucp.tag_probe) &&
         find(library, "ucp_tag_send_sync_nbx", ucp.tag_send_sync) && find(library, "ucp_tag_send_nbx", ucp.tag_send) &&
         find(library, "ucp_tag_recv_nbx", ucp.tag_recv) &&
         find(library, "ucp_request_check_status", ucp.request_check_status) &&
         find(library, "ucp_tag_recv_request_test", ucp.recv_request_test) &&
         find(library, "ucp_request_cancel", ucp.request_cancel) &&
         find(library, "ucp_request_free", ucp.request_free) && find(library, "ucs_status_string", ucp.status_string);
}

Result<const UcpLibrary*> load() {
  const KeepSignals keep;
  void* library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Status(Code::unavailable, reason != nullptr ? reason : "libucp.so.0 cannot be opened");
  }
  static constinit UcpLibrary ucp;
  if (!find_all(library, ucp)) return Status(Code::unavailable, "libucp.so.0 lacks a function: UCX 1.10 is needed");
  return &ucp;
}

}  // namespace

Result<const UcpLibrary*> system_ucp() {
  static const auto* const loaded = new Result<const UcpLibrary*>(load());  // never destroyed: used until the end
  return *loaded;
}

}  // namespace plait::tl
