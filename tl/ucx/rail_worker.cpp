#include "tl/ucx/rail_worker.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "tl/ucx/message_tag.h"

namespace plait::tl {
namespace {

using Setting = std::pair<const char*, const char*>;

// Pieces are short enough to go at once: a hand-shake would wait behind queued data. Between two nodes of an emulated
// cluster 64 KiB took 28 us so, 68 us by rendezvous.
//
// A connection knows the peer's end of it before any data. Left to itself UCX asks for that at the first synchronous
// send and puts back whatever the connection's socket has not taken by then; UCX 1.13 loses the answer to the peer's
// own attempt to connect if that is among it, after which neither side can send for ever.
//
// Sockets register no memory. The cache of what is registered watches the process's mappings, and making it hangs now
// and then in libucm of UCX 1.23, at a lock of its own.
//
// An interface is looked at whether it has connections or not. To stop looking UCX looks once more, and ends the
// process if it finds anything: as when a stranger connects while the worker is being made.
constexpr auto tcp_settings = std::to_array<Setting>(
    {{"RNDV_THRESH", "inf"}, {"RESOLVE_REMOTE_EP_ID", "y"}, {"RCACHE_ENABLE", "n"}, {"ADAPTIVE_PROGRESS", "n"}});

// What the transport itself reads. UCX warns of what nobody has read, at every start, and later versions read names
// with the transport's before them.
//
// An idle connection outlives an outage of eight minutes, as those of Open MPI's daemons do; UCX would end it after 16
// s. On one that something is awaited on stall_watch.h notices a cut link much sooner.
//
// No call waits for a connection: towards a host that has just been cut off the kernel would hold the process for half
// a minute and more, once for each host.
constexpr auto transport_settings =
    std::to_array<Setting>({{"KEEPIDLE", "300s"}, {"KEEPINTVL", "20s"}, {"KEEPCNT", "9"}, {"CONN_NB", "y"}});

std::string transport_prefix(const UcpLibrary& ucp) {
  unsigned major = 0, minor = 0, release = 0;
  ucp.get_version(&major, &minor, &release);
  return major == 1 && minor <= 13 ? "" : "TCP_";
}

Status failure(const UcpLibrary& ucp, const Rail& rail, const char* what, ucs_status_t status) {
  return {Code::unavailable, "ucx: rail " + rail.name + ": " + what + ": " + ucp.status_string(status)};
}

// Other versions of UCX may lack what is set.
ucs_status_t modify_known(const UcpLibrary& ucp, ucp_config_t* config, const std::string& name, const char* value) {
  const ucs_status_t status = ucp.config_modify(config, name.c_str(), value);
  return status == UCS_ERR_NO_ELEM || status == UCS_ERR_INVALID_PARAM ? UCS_OK : status;
}

ucs_status_t set_up_tcp(const UcpLibrary& ucp, ucp_config_t* config) {
  ucs_status_t status = UCS_OK;
  for (const auto& [name, value] : tcp_settings)
    if (status == UCS_OK) status = modify_known(ucp, config, name, value);
  const std::string prefix = transport_prefix(ucp);
  for (const auto& [name, value] : transport_settings)
    if (status == UCS_OK) status = modify_known(ucp, config, prefix + name, value);
  return status;
}

// Those of one connection: its own socket, one that UCX opens for a moment to ask about the device, and its peer's.
// Where the first connection of a worker cannot have them UCX 1.13 ends the process.
constexpr std::size_t files_of_a_connection = 4;

bool lacks_files() {
  std::array<int, files_of_a_connection> opened;
  bool lacks = false;
  for (int& file : opened) {
    file = eventfd(0, EFD_CLOEXEC);
    lacks |= file < 0 && (errno == EMFILE || errno == ENFILE);
  }
  for (const int file : opened)
    if (file >= 0) ::close(file);
  return lacks;
}

void on_failure(void* argument, ucp_ep_h, ucs_status_t status) {
  auto* endpoint = static_cast<UcxEndpoint*>(argument);
  int none = UCS_OK;
  if (!endpoint->failure.compare_exchange_strong(none, status)) return;
  endpoint->failures->fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t introduction_of(std::uint64_t process) { return process << binding_bits | introduction_binding; }

// What the user chose may be unable to wake anybody, or pay for it with each message.
bool wakes(const RailOptions& options) { return options.transports.empty(); }

std::string transports_of(const Rail& rail, const RailOptions& options) {
  if (!options.transports.empty()) return options.transports;
  return rail.kind == RailKind::ethernet ? "tcp" : "rc,dc,ud";
}

}  // namespace

const char* lack_of_files() { return lacks_files() ? ": this process can open no more files" : ""; }

Result<std::unique_ptr<RailWorker>> RailWorker::open(const UcpLibrary& ucp, const Rail& rail,
                                                     const RailOptions& options) {
  std::unique_ptr<RailWorker> made(new RailWorker(ucp, rail, options));
  if (Status status = made->start(options); !status.ok()) return status;
  return made;
}

// What must hold for us wins over the user's UCX_* variables, which are read as well.
Status RailWorker::make_context(const RailOptions& options) {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_.config_read(nullptr, nullptr, &config); status != UCS_OK)
    return failure(ucp_, rail_, "reading UCX's settings", status);
  const std::string transports = transports_of(rail_, options);
  ucs_status_t status = ucp_.config_modify(config, "TLS", transports.c_str());
  if (status == UCS_OK) status = ucp_.config_modify(config, "NET_DEVICES", rail_.name.c_str());
  if (status == UCS_OK && rail_.kind == RailKind::ethernet) status = set_up_tcp(ucp_, config);
  ucp_params_t parameters = {};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_TAG | (wakes(options) ? UCP_FEATURE_WAKEUP : 0);
  if (status == UCS_OK) status = ucp_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
  ucp_.config_release(config);
  return status == UCS_OK ? Status() : failure(ucp_, rail_, "opening the device", status);
}

// Locks are ours.
Status RailWorker::make_worker(const RailOptions& options) {
  ucp_worker_params_t parameters = {};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = options.threads == WorkerThreads::one ? UCS_THREAD_MODE_SINGLE : UCS_THREAD_MODE_SERIALIZED;
  if (const auto status = ucp_.worker_create(context_, &parameters, &worker_); status != UCS_OK)
    return failure(ucp_, rail_, "making a worker", status);
  return {};
}

Status RailWorker::start(const RailOptions& options) {
  if (Status status = make_context(options); !status.ok()) return status;
  if (Status status = make_worker(options); !status.ok()) return status;
  if (wakes(options) && ucp_.worker_get_efd(worker_, &events_) != UCS_OK) events_ = -1;
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucp_.worker_get_address(worker_, &address, &bytes); status != UCS_OK)
    return failure(ucp_, rail_, "asking for its address", status);
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucp_.worker_release_address(worker_, address);
  return {};
}

RailWorker::~RailWorker() {
  const Turn turn(*this);
  for (auto& [process, endpoint] : endpoints_) close(*endpoint);
  if (worker_ != nullptr) ucp_.worker_destroy(worker_);
  if (context_ != nullptr) ucp_.cleanup(context_);
}

void RailWorker::wait_for_turn() {
  crossed_.store(true, std::memory_order_relaxed);
  while (inside_.load(std::memory_order_acquire)) sched_yield();
}

Status RailWorker::why_crossed() const {
  return {Code::internal, "ucx: rail " + rail_.name +
                              ": two threads were in its worker at once, against what MPI was " +
                              "initialised for (MPI_THREAD_SERIALIZED or less)"};
}

bool RailWorker::arm(WakeUp& wake_up) {
  assert(inside());
  if (events_ < 0) return false;
  const ucs_status_t status = ucp_.worker_arm(worker_);
  if (status == UCS_ERR_BUSY) {
    wake_up.busy = true;
    return true;
  }
  if (status == UCS_OK) wake_up.descriptors.push_back({events_, POLLIN, 0});
  return status == UCS_OK;
}

Result<UcxEndpoint*> RailWorker::connect(std::uint64_t process, const std::string& address) {
  assert(inside());
  std::unique_ptr<UcxEndpoint>& endpoint = endpoints_[process];
  if (endpoint != nullptr) return endpoint.get();
  const auto unconnected = [&](const std::string& reason) {
    endpoints_.erase(process);
    return Status(Code::unavailable, "cannot connect" + reason + lack_of_files());
  };
  if (lacks_files()) return unconnected("");
  endpoint = std::make_unique<UcxEndpoint>();
  endpoint->failures = &failures_;
  ucp_ep_params_t parameters = {};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler = {.cb = on_failure, .arg = endpoint.get()};
  if (const auto status = ucp_.ep_create(worker_, &parameters, &endpoint->handle); status != UCS_OK)
    return unconnected(std::string(": ") + ucp_.status_string(status));
  introduce(*endpoint, process);
  return endpoint.get();
}

// Ours arrives only once the other process has connected as well, and so has made its end of the connection.
void RailWorker::introduce(UcxEndpoint& endpoint, std::uint64_t process) {
  static char nothing = 0;
  endpoint.introduced = process_ == 0;
  if (endpoint.introduced) return;
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  endpoint.heard = ucp_.tag_recv(worker_, &nothing, 0, introduction_of(process), whole_tag, &parameters);
  endpoint.said = ucp_.tag_send_sync(endpoint.handle, &nothing, 0, introduction_of(process_), &parameters);
  for (void** request : {&endpoint.heard, &endpoint.said}) {
    if (!UCS_PTR_IS_ERR(*request)) continue;
    on_failure(&endpoint, endpoint.handle, UCS_PTR_STATUS(*request));
    *request = nullptr;
  }
}

bool RailWorker::introduced(UcxEndpoint& endpoint) {
  if (!arrived(endpoint.said, endpoint) || !arrived(endpoint.heard, endpoint)) return false;
  return endpoint.introduced = true;
}

bool RailWorker::arrived(void*& request, UcxEndpoint& endpoint) {
  if (request == nullptr) return true;
  const ucs_status_t status = ucp_.request_check_status(request);
  if (status == UCS_INPROGRESS) return false;
  ucp_.request_free(std::exchange(request, nullptr));
  if (status != UCS_OK) on_failure(&endpoint, endpoint.handle, status);
  return true;
}

void RailWorker::forget_introduction(UcxEndpoint& endpoint) {
  if (endpoint.heard != nullptr) ucp_.request_cancel(worker_, endpoint.heard);
  for (void** request : {&endpoint.heard, &endpoint.said})
    if (*request != nullptr) ucp_.request_free(std::exchange(*request, nullptr));
}

void RailWorker::close(UcxEndpoint& endpoint, ucs_status_t reason) {
  assert(inside());
  if (endpoint.handle == nullptr) return;
  on_failure(&endpoint, endpoint.handle, reason);
  ucp_request_param_t parameters = {};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_.ep_close(std::exchange(endpoint.handle, nullptr), &parameters);
  forget_introduction(endpoint);
  if (!UCS_PTR_IS_PTR(request)) return;
  constexpr int most_glances = 1000;
  for (int glance = 0; glance < most_glances && ucp_.request_check_status(request) == UCS_INPROGRESS; ++glance)
    progress();
  ucp_.request_free(request);
}

}  // namespace plait::tl
