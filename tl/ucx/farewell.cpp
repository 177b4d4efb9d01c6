#include "tl/ucx/farewell.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "tl/ucx/message_tag.h"

namespace plait::tl {
namespace {

// True when it is over, well or not; it is freed then.
bool over(const UcpLibrary& ucp, void*& request) {
  if (request == nullptr) return true;
  if (UCS_PTR_IS_PTR(request)) {
    if (ucp.request_check_status(request) == UCS_INPROGRESS) return false;
    ucp.request_free(request);
  }
  request = nullptr;
  return true;
}

Status failure_of(const Farewell& farewell) noexcept {
  const Code code = farewell.by_hearsay != 0 ? Code::peer_left : Code::peer_failed;
  try {
    return {code, "ucx: rank " + std::to_string(farewell.first_failed) + " has failed: " + farewell.reason.data()};
  } catch (const std::bad_alloc&) {
    return {code, "a rank failed"};
  }
}

}  // namespace

void Farewells::compose(const Status& cause) noexcept {
  *own_ = first_;
  const bool by_hearsay = cause.code() == Code::peer_left;
  if (!heard_.ok() && (by_hearsay || heard_.code() != Code::peer_left)) return;
  own_->first_failed = rank_;
  own_->by_hearsay = by_hearsay ? 1 : 0;
  own_->reason.fill(0);
  std::copy_n(cause.message().data(), std::min(cause.message().size(), own_->reason.size() - 1), own_->reason.data());
}

// UCX holds back what the socket does not take, and nobody may call its progress afterwards: hence the flush.
void Farewells::say(RailWorker& worker, UcxEndpoint& endpoint) {
  const std::uint64_t tag = message_tag(communicator_, rank_, farewell_binding);
  ucp_request_param_t parameters;
  parameters.op_attr_mask = 0;
  void* message = worker.ucp().tag_send(endpoint.handle, own_.get(), sizeof *own_, tag, &parameters);
  void* flush = worker.ucp().ep_flush(endpoint.handle, &parameters);
  said_.push_back({&worker, &endpoint, message, flush});
}

bool Farewells::all_left(RailWorker& worker) {
  bool all = true;
  for (Said& one : said_) {
    if (one.worker != &worker || one.left) continue;
    const bool message_over = over(worker.ucp(), one.message), flush_over = over(worker.ucp(), one.flush);
    one.left = message_over && flush_over;
    if (one.left) one.endpoint->unconfirmed = 0;
    all &= one.left;
  }
  return all;
}

bool Farewells::left(const UcxEndpoint& endpoint) const {
  const auto one = std::ranges::find(said_, &endpoint, &Said::endpoint);
  return one != said_.end() && one->left;
}

void Farewells::forget(RailWorker& worker) {
  for (Said& one : said_) {
    if (one.worker != &worker) continue;
    if (!over(worker.ucp(), one.message)) {
      static_cast<void>(own_.release());
      worker.ucp().request_free(one.message);
    }
    if (!over(worker.ucp(), one.flush)) worker.ucp().request_free(one.flush);
  }
  std::erase_if(said_, [&](const Said& one) { return one.worker == &worker; });
  if (incoming_.worker != &worker || take_incoming(worker)) return;
  worker.ucp().request_cancel(worker.worker(), incoming_.request);
  worker.ucp().request_free(incoming_.request);
  static_cast<void>(incoming_.farewell.release());
  incoming_ = {};
}

void Farewells::listen(RailWorker& worker) {
  if (incoming_.worker != nullptr && (incoming_.worker != &worker || !take_incoming(worker))) return;
  const std::uint64_t wanted = message_tag(communicator_, 0, farewell_binding);
  ucp_tag_recv_info_t found;
  while (worker.ucp().tag_probe(worker.worker(), wanted, any_sender, 0, &found) != nullptr)
    if (!receive(worker, found.sender_tag)) return;
}

// True when it is here and taken.
bool Farewells::receive(RailWorker& worker, std::uint64_t tag) {
  incoming_.farewell.reset(new (std::nothrow) Farewell);
  if (incoming_.farewell == nullptr) return false;
  incoming_.sender = tag >> binding_bits & ((std::uint64_t{1} << rank_bits) - 1);
  ucp_request_param_t parameters;
  parameters.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  incoming_.request =
      worker.ucp().tag_recv(worker.worker(), incoming_.farewell.get(), sizeof(Farewell), tag, whole_tag, &parameters);
  if (!UCS_PTR_IS_PTR(incoming_.request)) return false;
  incoming_.worker = &worker;
  return take_incoming(worker);
}

// One that is garbled is a farewell all the same.
bool Farewells::take_incoming(RailWorker& worker) {
  if (!over(worker.ucp(), incoming_.request)) return false;
  const Incoming taken = std::exchange(incoming_, {});
  if (taken.sender < heard_from_.size()) heard_from_[taken.sender] = 1;
  if (!heard_.ok()) return true;
  first_ = *taken.farewell;
  first_.reason.back() = 0;
  if (first_.first_failed < 0) first_.first_failed = static_cast<std::int32_t>(taken.sender);
  heard_ = failure_of(first_);
  return true;
}

}  // namespace plait::tl
