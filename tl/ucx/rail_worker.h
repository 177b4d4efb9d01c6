// One rail of this process: a UCX context and worker on one port, and the endpoints to the processes that it talks to.
// It belongs to the process; the channels of all communicators share it.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tl/channel.h"
#include "tl/layer.h"
#include "tl/ucx/ucp_library.h"
#include "topo/rails.h"

namespace plait::tl {

// A connection to one process over one rail. Made at the first message, kept until the process ends. Before any message
// both ends introduce themselves: until then UCX 1.13 may end the other process when this one cuts the connection.
struct UcxEndpoint {
  ucp_ep_h handle = nullptr;
  std::atomic<int> failure{UCS_OK};                // a ucs_status_t, once the connection has failed
  std::atomic<std::uint32_t>* failures = nullptr;  // counts those of the worker
  std::uint64_t unconfirmed = 0;  // bytes sent since the last that is known to arrive; guarded by the lock
  // Of the introduction, guarded as well: what is under way, and whether both are known to have arrived.
  void* said = nullptr;
  void* heard = nullptr;
  bool introduced = false;
};

// ": this process can open no more files" where that is so, else nothing: what UCX reports then does not tell.
const char* lack_of_files();

// Which threads of the process use a worker.
enum class WorkerThreads : std::uint8_t {
  one,      // always the same
  in_turn,  // several, never two at once
  at_once,  // several, whenever they like: the program's, or the program's and a helper of ours
};

struct RailOptions {
  std::string transports;  // as UCX_TLS; empty: by the kind of the rail
  WorkerThreads threads = WorkerThreads::one;
  // This process's number, as others give it to connect(); 0: there are no introductions, on either side.
  std::uint64_t process = 0;
};

class RailWorker {
 public:
  // Takes milliseconds. `ucp` must outlive it.
  static Result<std::unique_ptr<RailWorker>> open(const UcpLibrary& ucp, const Rail& rail, const RailOptions& options);
  RailWorker(const RailWorker&) = delete;
  RailWorker& operator=(const RailWorker&) = delete;
  ~RailWorker();

  const Rail& rail() const { return rail_; }
  const UcpLibrary& ucp() const { return ucp_; }
  ucp_worker_h worker() const { return worker_; }
  // What others need to connect: some tens of bytes.
  const std::string& address() const { return address_; }
  // A send may be complete although UCX still holds its bytes, because the socket was full: it goes on only while
  // somebody calls progress.
  bool holds_back() const { return rail_.kind == RailKind::ethernet; }

  // A thread's turn: while it lives no other thread is inside.
  class Turn {
   public:
    explicit Turn(RailWorker& worker) : worker_(worker), locked_(worker.locks_ || worker.crossed()) {
      if (locked_) worker_.guard_.lock();
      if (worker_.inside_.load(std::memory_order_acquire)) [[unlikely]]
        worker_.wait_for_turn();
      worker_.inside_.store(true, std::memory_order_relaxed);
    }
    ~Turn() {
      worker_.inside_.store(false, std::memory_order_release);
      if (locked_) worker_.guard_.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    RailWorker& worker_;
    bool locked_;
  };

  // Everything below, and every call on worker() and its endpoints, needs this. It locks only where several threads may
  // come at once (a nanosecond else). Where that was not foreseen, and one comes while another is inside, it waits, and
  // the worker is `crossed`: UCX may have corrupted what it keeps, so that no channel goes on. A thread must not ask
  // twice.
  [[nodiscard]] Turn lock() { return Turn(*this); }
  bool crossed() const { return crossed_.load(std::memory_order_relaxed); }
  Status why_crossed() const;
  // The endpoint to the process of that number; made when it is new. Does not wait for the connection. A failure's
  // message is the reason alone.
  Result<UcxEndpoint*> connect(std::uint64_t process, const std::string& address);
  // Whether messages may go over it. True as well when it has failed: they then say so.
  bool ready(UcxEndpoint& endpoint) {
    return endpoint.introduced || endpoint.failure.load(std::memory_order_relaxed) != UCS_OK || introduced(endpoint);
  }
  void progress() {
    assert(inside());
    ucp_.worker_progress(worker_);
  }
  // As Channel::arm.
  bool arm(WakeUp& wake_up);
  // Ends the connection, for all communicators and on both sides: what is under way fails, here with this reason.
  void close(UcxEndpoint& endpoint, ucs_status_t reason = UCS_ERR_CANCELED);

  std::uint32_t failures() const { return failures_.load(std::memory_order_relaxed); }
  void count_bytes(std::uint64_t bytes) {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  // Payload that went over plain sockets on this rail; needs no lock.
  std::atomic<std::uint64_t>& socket_bytes() { return socket_bytes_; }
  // Payload sent by all communicators; needs no lock.
  std::uint64_t bytes_sent() const {
    return bytes_.load(std::memory_order_relaxed) + socket_bytes_.load(std::memory_order_relaxed);
  }

 private:
  RailWorker(const UcpLibrary& ucp, const Rail& rail, const RailOptions& options)
      : ucp_(ucp), rail_(rail), locks_(options.threads == WorkerThreads::at_once), process_(options.process) {}
  Status start(const RailOptions& options);
  Status make_context(const RailOptions& options);
  Status make_worker(const RailOptions& options);
  bool inside() const { return inside_.load(std::memory_order_relaxed); }
  void wait_for_turn();
  void introduce(UcxEndpoint& endpoint, std::uint64_t process);
  bool introduced(UcxEndpoint& endpoint);
  bool arrived(void*& request, UcxEndpoint& endpoint);
  void forget_introduction(UcxEndpoint& endpoint);

  const UcpLibrary& ucp_;
  Rail rail_;
  bool locks_;
  std::uint64_t process_;
  std::mutex guard_;
  // Some thread is. Not a locked instruction: two that come within a few nanoseconds may both pass, but not for long.
  std::atomic<bool> inside_{false};
  std::atomic<bool> crossed_{false};  // from then on all lock
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int events_ = -1;  // a descriptor of UCX's that becomes readable; -1: there is none
  std::string address_;
  std::map<std::uint64_t, std::unique_ptr<UcxEndpoint>> endpoints_;
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<std::uint64_t> bytes_{0}, socket_bytes_{0};
};

}  // namespace plait::tl
