// What the persistent collectives of a communicator run on: connections of their own, beside those of its other calls,
// and the order in which all ranks run what they start (start_order.h). Set up by the first call that makes one, which
// all ranks make; lives until the communicator is freed and the last of the requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/status.h"
#include "runtime/execution/communicator.h"
#include "runtime/layer.h"
#include "runtime/progress/operation.h"
#include "runtime/progress/start_order.h"
#include "runtime/team/team.h"

namespace plait::runtime {

// What connects its ranks (persistent_set_up.h).
struct SpaceConnections {
  std::unique_ptr<Team> team;
  std::unique_ptr<Team> between_leaders;  // what leaders talk over; nullptr: there is one node
  std::unique_ptr<StartOrder> order;
};

class PersistentSpace {
 public:
  // `communicator` stands for the program's, over the same ranks.
  explicit PersistentSpace(std::unique_ptr<Communicator> communicator);
  // Once, before all else. Without connections `communicator()` is the host's, and says why.
  void open(Result<SpaceConnections> made) noexcept;
  PersistentSpace(const PersistentSpace&) = delete;
  PersistentSpace& operator=(const PersistentSpace&) = delete;

  // Where operations run.
  Communicator& communicator() { return *communicator_; }

  // Collective; blocks. A slot that is free on all ranks, for `operation`; none where one rank has no use for it or no
  // slot is free. `wanted`: on this rank.
  // nullptr: this rank has no operation.
  std::optional<std::uint32_t> take_slot(Operation* operation, bool wanted);
  void give_slot_back(std::uint32_t slot) { slots_[slot].store(nullptr, std::memory_order_release); }

  // This rank starts the operation in that slot. Thread-safe.
  void announce(std::uint32_t slot);

  // For progress(): the next operation to run, if there is one. `moved` becomes true where the ranks came nearer to it.
  // Once the space has failed: any that was started.
  Operation* next(bool may_call_host, bool& moved);

  // The other ranks of the node are to stop waiting: an operation has failed here.
  void note_failure() { order_->fail(); }
  bool anything_started() const { return waiting_.load(std::memory_order_acquire) > 0; }

  PersistentSpace* next_space = nullptr;  // in the list of progress()

 private:
  Operation* next_failed();
  void look_for_failures();

  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Team> between_leaders_;  // what leaders talk over; nullptr: there is one node
  std::unique_ptr<StartOrder> order_;
  std::vector<std::atomic<Operation*>> slots_;
  std::vector<std::atomic<bool>> announced_;  // by slot: and not yet run
  std::atomic<int> waiting_{0};               // announced, and not yet run
  std::uint32_t idle_turns_ = 0;
};

}  // namespace plait::runtime
