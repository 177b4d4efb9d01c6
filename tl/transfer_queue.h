// The transfers that a channel has taken on in one direction to or from one peer.
#pragma once

#include <utility>

#include "tl/channel.h"

namespace plait::tl {

// Transfers linked through `next`, in message order.
struct TransferQueue {
  Transfer* head = nullptr;
  Transfer* tail = nullptr;

  bool empty() const { return head == nullptr; }
  void push(Transfer& transfer) {
    transfer.next = nullptr;
    if (head == nullptr)
      head = &transfer;
    else
      tail->next = &transfer;
    tail = &transfer;
  }
  Transfer* pop() { return std::exchange(head, head->next); }
};

}  // namespace plait::tl
