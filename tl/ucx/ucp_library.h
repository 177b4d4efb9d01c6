// The functions of libucp that Plait calls. They are found at run time, so that libplait.so loads and works where UCX
// is not installed, and so that the tests can put a fake in their place.
#pragma once

#include <ucp/api/ucp.h>

#include "core/status.h"

namespace plait::tl {

struct UcpLibrary {
  decltype(&ucp_config_read) config_read = nullptr;
  decltype(&ucp_config_modify) config_modify = nullptr;
  decltype(&ucp_config_release) config_release = nullptr;
  decltype(&ucp_init_version) init_version = nullptr;
  decltype(&ucp_get_version) get_version = nullptr;
  decltype(&ucp_cleanup) cleanup = nullptr;
  decltype(&ucp_worker_create) worker_create = nullptr;
  decltype(&ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&ucp_worker_progress) worker_progress = nullptr;
  decltype(&ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&ucp_worker_arm) worker_arm = nullptr;
  decltype(&ucp_ep_create) ep_create = nullptr;
  decltype(&ucp_ep_close_nbx) ep_close = nullptr;
  decltype(&ucp_ep_flush_nbx) ep_flush = nullptr;
  decltype(&ucp_tag_send_nbx) tag_send = nullptr;
  decltype(&ucp_tag_send_sync_nbx) tag_send_sync = nullptr;
  decltype(&ucp_tag_recv_nbx) tag_recv = nullptr;
  decltype(&ucp_tag_probe_nb) tag_probe = nullptr;
  decltype(&ucp_request_check_status) request_check_status = nullptr;
  decltype(&ucp_tag_recv_request_test) recv_request_test = nullptr;
  decltype(&ucp_request_cancel) request_cancel = nullptr;
  decltype(&ucp_request_free) request_free = nullptr;
  decltype(&ucs_status_string) status_string = nullptr;
};

// Opens libucp.so.0 at the first call, for the life of the process. The handlers of signals that UCX installs for
// crashes are taken back: a program keeps its own. Thread-safe. `unavailable` where there is none, or it lacks
// something.
Result<const UcpLibrary*> system_ucp();

}  // namespace plait::tl
