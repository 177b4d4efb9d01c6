#include "tests/tl/fake_ucp.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plait::tl::fake_ucp {

Behaviour behaviour;

namespace {

struct Worker;

struct Endpoint;

struct Request {
  Worker* owner;
  Endpoint* flushed = nullptr;
  bool send = false;
  ucs_status_t status = UCS_INPROGRESS;
  std::size_t length = 0;
};

struct Posted {
  ucp_tag_t tag;
  void* buffer;
  std::size_t bytes;
  Request* request;
};

// Nobody waits for it yet. `synchronous`: its send completes when somebody does; else nullptr.
struct Unexpected {
  ucp_tag_t tag;
  std::vector<char> bytes;
  Worker* from;
  Request* synchronous;
};

struct Worker {
  int number = 0;
  int events = -1;
  bool armed = false;
  std::atomic<bool> visited{false};
  std::deque<Posted> receives;
  std::deque<Unexpected> unexpected;
};

struct Endpoint {
  Worker* owner = nullptr;
  Worker* peer = nullptr;
  ucp_err_handler_t handler{};
  bool closed = false;
};

struct Message {
  Worker* from;
  Worker* to;
  ucp_tag_t tag;
  std::vector<char> bytes;
  Request* request;
  bool synchronous;
};

std::vector<std::unique_ptr<Worker>> workers;
std::list<std::unique_ptr<Endpoint>> endpoints;
std::deque<Message> wire;
int workers_open = 0, requests_open = 0, synchronous = 0;
std::atomic<int> met{0};
ucs_thread_mode_t last_thread_mode = UCS_THREAD_MODE_SINGLE;

// All of the above is shared by all workers.
std::mutex guard;

std::atomic<int> visits{0};

// A call on a worker.
class Visit {
 public:
  explicit Visit(Worker& worker) : worker_(worker), alone_(!worker.visited.exchange(true)) {
    if (!alone_) ++met;
    if (behaviour.yield_every != 0 && ++visits % behaviour.yield_every == 0) sched_yield();
    guard.lock();
  }
  explicit Visit(ucp_worker_h worker) : Visit(*reinterpret_cast<Worker*>(worker)) {}
  explicit Visit(ucp_ep_h endpoint) : Visit(*reinterpret_cast<Endpoint*>(endpoint)->owner) {}
  explicit Visit(void* request) : Visit(*static_cast<Request*>(request)->owner) {}
  ~Visit() {
    guard.unlock();
    if (alone_) worker_.visited = false;
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Worker& worker_;
  bool alone_;
};

Request* new_request(Worker& owner, bool send) {
  ++requests_open;
  return new Request{.owner = &owner, .send = send};
}

void land(const Posted& posted, const std::vector<char>& bytes) {
  if (!bytes.empty()) std::memcpy(posted.buffer, bytes.data(), std::min(bytes.size(), posted.bytes));
  posted.request->length = bytes.size();
  posted.request->status = bytes.size() > posted.bytes ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK;
}

void arrive(Message message) {
  Worker& worker = *message.to;
  const auto match = std::ranges::find(worker.receives, message.tag, &Posted::tag);
  const bool awaited = match != worker.receives.end();
  Request* waits = message.synchronous && !awaited && behaviour.send_status == UCS_OK ? message.request : nullptr;
  if (message.request != waits) message.request->status = behaviour.send_status;
  if (!awaited) {
    worker.unexpected.push_back({message.tag, std::move(message.bytes), message.from, waits});
    return;
  }
  land(*match, message.bytes);
  worker.receives.erase(match);
}

// The messages of one tag keep their order; others may overtake them.
void deliver_one() {
  std::size_t index = 0;
  if (behaviour.newest_first)
    for (std::size_t i = wire.size(); i-- > 0;) {
      const auto same = [&](const Message& m) { return m.tag == wire[i].tag && m.to == wire[i].to; };
      index = static_cast<std::size_t>(std::ranges::find_if(wire, same) - wire.begin());
      break;
    }
  Message message = std::move(wire[index]);
  wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(index));
  message.bytes.resize(message.bytes.size() - std::min(message.bytes.size(), behaviour.cut_bytes));
  arrive(std::move(message));
}

ucs_status_t config_read(const char*, const char*, ucp_config_t** config) { return *config = nullptr, UCS_OK; }
ucs_status_t config_modify(ucp_config_t*, const char*, const char*) { return UCS_OK; }
void get_version(unsigned* major, unsigned* minor, unsigned* release) { *major = 1, *minor = 13, *release = 0; }
void config_release(ucp_config_t*) {}
ucs_status_t init(unsigned, unsigned, const ucp_params_t*, const ucp_config_t*, ucp_context_h* context) {
  return *context = nullptr, UCS_OK;
}
void cleanup(ucp_context_h) {}

ucs_status_t worker_create(ucp_context_h, const ucp_worker_params_t* parameters, ucp_worker_h* worker) {
  last_thread_mode = parameters->thread_mode;
  if (behaviour.worker_status != UCS_OK) return behaviour.worker_status;
  workers.push_back(std::make_unique<Worker>());
  workers.back()->number = static_cast<int>(workers.size()) - 1;
  *worker = reinterpret_cast<ucp_worker_h>(workers.back().get());
  ++workers_open;
  return UCS_OK;
}
void worker_destroy(ucp_worker_h handle) {
  --workers_open;
  Worker& worker = *reinterpret_cast<Worker*>(handle);
  if (worker.events >= 0) close(std::exchange(worker.events, -1));
}
ucs_status_t get_address(ucp_worker_h worker, ucp_address_t** address, std::size_t* bytes) {
  *address = reinterpret_cast<ucp_address_t*>(&reinterpret_cast<Worker*>(worker)->number);
  *bytes = sizeof(int);
  return UCS_OK;
}
void release_address(ucp_worker_h, ucp_address_t*) {}

ucs_status_t get_efd(ucp_worker_h handle, int* descriptor) {
  if (behaviour.events_status != UCS_OK) return behaviour.events_status;
  Worker& worker = *reinterpret_cast<Worker*>(handle);
  if (worker.events < 0) worker.events = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  return *descriptor = worker.events, UCS_OK;
}
ucs_status_t arm(ucp_worker_h handle) {
  const Visit visit(handle);
  const auto waits = [&](const Message& message) { return message.to == reinterpret_cast<Worker*>(handle); };
  if (std::ranges::any_of(wire, waits)) return UCS_ERR_BUSY;
  Worker& worker = *reinterpret_cast<Worker*>(handle);
  eventfd_t count = 0;
  eventfd_read(worker.events, &count);
  worker.armed = true;
  return UCS_OK;
}

unsigned progress(ucp_worker_h handle) {
  const Visit visit(handle);
  unsigned delivered = 0;
  for (int i = 0; i < behaviour.deliveries_a_progress && !wire.empty(); ++i, ++delivered) deliver_one();
  return delivered;
}

ucs_status_t ep_create(ucp_worker_h handle, const ucp_ep_params_t* parameters, ucp_ep_h* endpoint) {
  const Visit visit(handle);
  if (behaviour.connect_status != UCS_OK) return behaviour.connect_status;
  int number = 0;
  std::memcpy(&number, parameters->address, sizeof number);
  endpoints.push_back(std::make_unique<Endpoint>());
  endpoints.back()->owner = reinterpret_cast<Worker*>(handle);
  endpoints.back()->peer = workers[static_cast<std::size_t>(number)].get();
  endpoints.back()->handler = parameters->err_handler;
  *endpoint = reinterpret_cast<ucp_ep_h>(endpoints.back().get());
  return UCS_OK;
}
ucs_status_ptr_t ep_close(ucp_ep_h endpoint, const ucp_request_param_t*) {
  const Visit visit(endpoint);
  Endpoint& closed = *reinterpret_cast<Endpoint*>(endpoint);
  closed.closed = true;
  std::erase_if(wire, [&](const Message& message) {
    if (message.to != closed.peer || message.from != closed.owner) return false;
    if (message.request != nullptr) message.request->status = UCS_ERR_CANCELED;
    return true;
  });
  for (Unexpected& message : closed.peer->unexpected)
    if (message.from == closed.owner && message.synchronous != nullptr)
      std::exchange(message.synchronous, nullptr)->status = UCS_ERR_CANCELED;
  return nullptr;
}

ucs_status_ptr_t post_send(ucp_ep_h handle, const void* buffer, std::size_t bytes, ucp_tag_t tag, bool waits) {
  const Visit visit(handle);
  if (behaviour.post_status != UCS_OK)
    return reinterpret_cast<void*>(static_cast<std::intptr_t>(behaviour.post_status));
  const char* from = static_cast<const char*>(buffer);
  Endpoint& endpoint = *reinterpret_cast<Endpoint*>(handle);
  Request* request = behaviour.complete_at_once ? nullptr : new_request(*endpoint.owner, true);
  Worker& to = *endpoint.peer;
  wire.push_back({endpoint.owner, &to, tag, std::vector<char>(from, from + bytes), request, waits});
  if (std::exchange(to.armed, false)) eventfd_write(to.events, 1);
  return request;
}
ucs_status_ptr_t tag_send(ucp_ep_h endpoint, const void* buffer, std::size_t bytes, ucp_tag_t tag,
                          const ucp_request_param_t*) {
  return post_send(endpoint, buffer, bytes, tag, false);
}
ucs_status_ptr_t tag_send_sync(ucp_ep_h endpoint, const void* buffer, std::size_t bytes, ucp_tag_t tag,
                               const ucp_request_param_t*) {
  ++synchronous;
  return post_send(endpoint, buffer, bytes, tag, true);
}
ucs_status_ptr_t tag_recv(ucp_worker_h handle, void* buffer, std::size_t bytes, ucp_tag_t tag, ucp_tag_t,
                          const ucp_request_param_t*) {
  const Visit visit(handle);
  Worker& worker = *reinterpret_cast<Worker*>(handle);
  Request* request = new_request(worker, false);
  const auto match = std::ranges::find(worker.unexpected, tag, &Unexpected::tag);
  if (match != worker.unexpected.end()) {
    land({tag, buffer, bytes, request}, match->bytes);
    if (match->synchronous != nullptr) match->synchronous->status = behaviour.send_status;
    worker.unexpected.erase(match);
  } else {
    worker.receives.push_back({tag, buffer, bytes, request});
  }
  return request;
}
ucs_status_ptr_t ep_flush(ucp_ep_h handle, const ucp_request_param_t*) {
  const Visit visit(handle);
  auto& endpoint = *reinterpret_cast<Endpoint*>(handle);
  Request* request = new_request(*endpoint.owner, true);
  request->flushed = &endpoint;
  return request;
}
ucp_tag_message_h tag_probe(ucp_worker_h handle, ucp_tag_t tag, ucp_tag_t mask, int, ucp_tag_recv_info_t* info) {
  const Visit visit(handle);
  for (Unexpected& message : reinterpret_cast<Worker*>(handle)->unexpected) {
    if (((message.tag ^ tag) & mask) != 0) continue;
    *info = {.sender_tag = message.tag, .length = message.bytes.size()};
    return reinterpret_cast<ucp_tag_message_h>(&message);
  }
  return nullptr;
}
ucs_status_t check_status(void* handle) {
  const Visit visit(handle);
  const auto& request = *static_cast<Request*>(handle);
  if (request.flushed == nullptr) return request.status;
  if (request.flushed->closed) return UCS_ERR_CANCELED;
  const auto waits = [&](const Message& message) {
    return message.from == request.flushed->owner && message.to == request.flushed->peer;
  };
  return std::ranges::any_of(wire, waits) ? UCS_INPROGRESS : UCS_OK;
}
ucs_status_t recv_test(void* request, ucp_tag_recv_info_t* info) {
  const Visit visit(request);
  info->length = static_cast<Request*>(request)->length;
  return static_cast<Request*>(request)->status;
}
void cancel(ucp_worker_h handle, void* request) {
  const Visit visit(handle);
  if (static_cast<Request*>(request)->status != UCS_INPROGRESS) return;
  static_cast<Request*>(request)->status = UCS_ERR_CANCELED;
  std::erase_if(reinterpret_cast<Worker*>(handle)->receives, [&](const Posted& p) { return p.request == request; });
}
void release(void* request) {
  const Visit visit(request);
  --requests_open;
  for (Message& message : wire)
    if (message.request == request) message.request = nullptr;
  for (const auto& worker : workers)
    for (Unexpected& message : worker->unexpected)
      if (message.synchronous == request) message.synchronous = nullptr;
  delete static_cast<Request*>(request);
}
const char* status_text(ucs_status_t status) {
  return status == UCS_ERR_CONNECTION_RESET ? "Connection reset by remote peer" : "another status";
}

}  // namespace

void reset() {
  behaviour = {};
  wire.clear();
  workers.clear();
  endpoints.clear();
  workers_open = requests_open = synchronous = 0;
  met = 0;
}

void fail_endpoints(ucs_status_t status) {
  for (const auto& endpoint : endpoints)
    if (!endpoint->closed)
      endpoint->handler.cb(endpoint->handler.arg, reinterpret_cast<ucp_ep_h>(endpoint.get()), status);
}

int open_workers() { return workers_open; }
int open_requests() { return requests_open; }
int synchronous_sends() { return synchronous; }
int meetings() { return met; }
ucs_thread_mode_t thread_mode() { return last_thread_mode; }
int closed_endpoints() {
  return static_cast<int>(std::ranges::count_if(endpoints, [](const auto& endpoint) { return endpoint->closed; }));
}

const UcpLibrary& library() {
  static const UcpLibrary fake = {.config_read = config_read,
                                  .config_modify = config_modify,
                                  .config_release = config_release,
                                  .init_version = init,
                                  .get_version = get_version,
                                  .cleanup = cleanup,
                                  .worker_create = worker_create,
                                  .worker_destroy = worker_destroy,
                                  .worker_get_address = get_address,
                                  .worker_release_address = release_address,
                                  .worker_progress = progress,
                                  .worker_get_efd = get_efd,
                                  .worker_arm = arm,
                                  .ep_create = ep_create,
                                  .ep_close = ep_close,
                                  .ep_flush = ep_flush,
                                  .tag_send = tag_send,
                                  .tag_send_sync = tag_send_sync,
                                  .tag_recv = tag_recv,
                                  .tag_probe = tag_probe,
                                  .request_check_status = check_status,
                                  .recv_request_test = recv_test,
                                  .request_cancel = cancel,
                                  .request_free = release,
                                  .status_string = status_text};
  return fake;
}

}  // namespace plait::tl::fake_ucp
