#include "runtime/progress/start_order.h"

#include <algorithm>
#include <utility>

namespace plait::runtime {

StartOrder::StartOrder(NodeLeaders nodes, SharedSegment table, Channel* channel)
    : nodes_(std::move(nodes)), memory_(std::move(table)), channel_(channel) {
  const std::size_t count = nodes_.leaders.size();
  if (count < 2 || !leads_node()) return;
  const std::size_t others = leads_all() ? count - 1 : 1;
  for (std::size_t i = 0; i < others; ++i) {
    auto link = std::make_unique<Link>();
    link->buffers.base = {reinterpret_cast<std::byte*>(&link->out), reinterpret_cast<std::byte*>(&link->in), nullptr};
    link->spans = {BoundSpan{0, sizeof(Message), Space::input}, BoundSpan{0, sizeof(Message), Space::output}};
    link->send.kind = StepKind::send;
    link->receive.kind = StepKind::recv;
    link->send.peer = link->receive.peer = nodes_.leaders[leads_all() ? i + 1 : 0];
    link->unsent.reserve(most_persistent);
    if (leads_all()) link->named.resize(most_persistent);
    links_.push_back(std::move(link));
  }
  if (!leads_all()) return;
  started_here_.resize(most_persistent);
  complete_.reserve(most_persistent);
}

void StartOrder::announce(std::uint32_t slot) {
  StartTable& shared = table();
  if (shared.started[slot].fetch_add(1, std::memory_order_acq_rel) + 1 < nodes_.ranks) return;
  shared.started[slot].store(0, std::memory_order_relaxed);
  (nodes_.leaders.size() == 1 ? shared.everywhere : shared.here).append(slot);
}

Result<bool> StartOrder::progress() {
  if (links_.empty()) return false;
  bool moved = false;
  while (const auto slot = table().here.next(read_here_)) {
    started_here(*slot);
    moved = true;
  }
  if (channel_->active() > 0) {
    completed_.clear();
    const Result<bool> progressed = channel_->progress(completed_);
    if (!progressed.ok()) return progressed;
    moved |= *progressed;
    for (const Transfer* transfer : completed_)
      for (const auto& link : links_)
        if (transfer == &link->send || transfer == &link->receive) done(*link, *transfer);
  }
  for (const auto& link : links_) {
    const Result<bool> exchanged = exchange(*link);
    if (!exchanged.ok()) return exchanged;
    moved |= *exchanged;
  }
  // What this rank still has to send would stay behind while it computes.
  if (complete_.empty() || !all_sent()) return moved;
  for (const std::uint32_t slot : complete_) table().everywhere.append(slot);
  complete_.clear();
  return true;
}

bool StartOrder::all_sent() const {
  return std::ranges::all_of(links_, [](const auto& link) { return !link->sending && link->unsent.empty(); });
}

void StartOrder::started_here(std::uint32_t slot) {
  if (!leads_all()) {
    Link& link = *links_.front();
    link.unsent.push_back(static_cast<std::uint16_t>(slot));
    ++link.awaited;
    return;
  }
  started_here_[slot] = true;
  for (const auto& link : links_)
    if (!link->named[slot]) ++link->awaited;
  look_whether_complete(slot);
}

void StartOrder::started_at(Link& link, std::uint32_t slot) {
  link.named[slot] = true;
  if (!started_here_[slot]) return;
  --link.awaited;
  look_whether_complete(slot);
}

void StartOrder::look_whether_complete(std::uint32_t slot) {
  if (!started_here_[slot] || !std::ranges::all_of(links_, [&](const auto& link) { return link->named[slot]; })) return;
  started_here_[slot] = false;
  for (const auto& link : links_) {
    link->named[slot] = false;
    link->unsent.push_back(static_cast<std::uint16_t>(slot));
  }
  complete_.push_back(slot);
}

void StartOrder::hear(Link& link) {
  for (std::size_t i = 0; i < std::min<std::size_t>(link.in.count, Message::most); ++i) {
    const std::uint32_t slot = link.in.slots[i] % most_persistent;
    if (leads_all()) {
      started_at(link, slot);
    } else {
      --link.awaited;
      table().everywhere.append(slot);
    }
  }
}

void StartOrder::done(Link& link, const Transfer& transfer) {
  if (&transfer == &link.send) {
    link.sending = false;
    return;
  }
  link.receiving = false;
  hear(link);
}

Result<bool> StartOrder::start(Link& link, Transfer& transfer) {
  const bool sends = &transfer == &link.send;
  (sends ? link.sending : link.receiving) = true;
  transfer.bytes = sizeof(Message);
  transfer.progressed = 0;
  transfer.next = nullptr;
  transfer.memory = {&link.spans[sends ? 0 : 1], 1, &link.buffers};
  const Result<bool> complete = channel_->start(transfer);
  if (complete.ok() && *complete) done(link, transfer);
  return complete;
}

// One message at a time in each direction.
Result<bool> StartOrder::exchange(Link& link) {
  bool moved = false;
  while (!link.sending && !link.unsent.empty()) {
    const std::size_t count = std::min(link.unsent.size(), Message::most);
    link.out.count = static_cast<std::uint16_t>(count);
    std::copy_n(link.unsent.begin(), count, link.out.slots.begin());
    link.unsent.erase(link.unsent.begin(), link.unsent.begin() + static_cast<std::ptrdiff_t>(count));
    moved = true;
    if (const Result<bool> sent = start(link, link.send); !sent.ok()) return sent;
  }
  while (!link.receiving && link.awaited > 0) {
    moved = true;
    if (const Result<bool> received = start(link, link.receive); !received.ok()) return received;
  }
  return moved;
}

}  // namespace plait::runtime
