// How far a rank's schedule is, and the messages that it asks for next: what the engine sends is sent, in its order and
// with its dependencies; nothing is computed, and nothing is in the messages. Who moves them stands elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/status.h"
#include "plan/lower/bound_schedule.h"

namespace plait::tuner {

// What a message is of: a step, or a part of its shared-memory collective.
struct Work {
  std::uint32_t step = 0;
  bool of_collective = false;
  int long_to = -1;  // who gets the long message that is sent; -1: no such one
};

// A message to post. Of one sender, receiver and tag there is one in a schedule.
struct Post {
  bool sends = false;
  int peer = 0;
  int tag = 0;
  std::uint64_t bytes = 0;
  Work work;
};

// From here on a message waits for its receiver (SMPI's smpi/send-is-detached-thresh as the command sets it), and for
// the sender's last one to the same receiver: over a connection one follows the other. Side by side in equal shares, as
// SimGrid has what is posted at once, the pieces of a pipeline all arrive when the last one does.
inline constexpr std::uint64_t long_bytes = 65536;

class ScheduleProgress {
 public:
  // `schedule` stays where it is.
  explicit ScheduleProgress(const plan::BoundSchedule& schedule) : schedule_(schedule) {}

  // From the start: what waits for nothing is asked for.
  void begin();
  // A message that was posted is done: adds what may be posted after it.
  void ended(const Work& work);
  // In the order in which they are posted; who has posted them clears it.
  std::vector<Post>& posts() { return posts_; }
  // When nothing is under way: fails (invalid) where steps are left that wait for ever.
  Status outcome() const;

 private:
  // A shared-memory collective under way: each member's part of the data goes to those who need it, as messages within
  // the node; a reduction first brings the parts to who combines them.
  struct Together {
    std::uint32_t step = 0;
    std::uint32_t pending = 0;  // messages
    int phase = 0;
  };

  void reset();
  void start_ready();
  bool may_start(std::uint32_t step) const;
  void start(std::uint32_t step);
  void complete(std::uint32_t step);
  void send(int peer, std::uint64_t bytes, int tag, const Work& work);
  void receive(int peer, std::uint64_t bytes, int tag, const Work& work);
  void start_phase(Together& together);
  void end(const Work& work);
  void let_next(int receiver);

  const plan::BoundSchedule& schedule_;
  std::vector<std::uint32_t> left_;       // by step: predecessors that are not complete
  std::vector<std::uint32_t> lane_next_;  // by lane: how many of its steps have started
  std::vector<std::uint32_t> ready_;      // steps whose predecessors are complete, which have not started
  std::vector<Together> together_;
  std::vector<Post> posts_;
  std::map<int, std::deque<Post>> behind_;  // by who receives a long message: those that follow it
  std::uint32_t completed_ = 0;
};

}  // namespace plait::tuner
