// Ranks in one process, each a thread of its own, and how they meet: what the runtime does at set-up can be tested
// without a launcher, for as many ranks as there may be threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/oob/oob.h"
#include "tests/runtime/memory_network.h"

namespace plait::runtime {

// Where the ranks meet. Outlives their Oobs.
class InProcessJob {
 public:
  explicit InProcessJob(int ranks);

  int ranks() const { return ranks_; }
  // From then on the ranks have messages as well; before the first oob.
  void bring_messages(std::uint64_t seed, int most_delay);
  MemoryNetwork& network() { return *network_; }
  // From then on some of the ranks alone cannot meet.
  void have_no_parts() { no_parts_ = true; }
  std::unique_ptr<Oob> oob(int rank);
  // At which all ranks have met so far.
  int steps();
  // Each rank in a thread of its own, until all have ended. What a rank returns is why it is not satisfied; the result
  // is the first such, with the rank, or empty.
  std::string run(const std::function<std::string(Oob& oob)>& rank);

 private:
  friend class InProcessOob;
  friend class InProcessNotice;
  using Bytes = std::vector<std::byte>;
  // From what all ranks brought.
  using Combine = std::function<Bytes(const std::vector<Bytes>&)>;
  struct Outcome {
    int missing;  // the first rank that does not go on; nobody: none
    std::shared_ptr<const Bytes> bytes;
  };
  struct Step;
  struct Notice {
    std::uint64_t number;
    int from;
    Code code;
    std::string reason;
  };

  // A rank that does not go on need not wait for the others.
  Outcome arrive(int rank, bool goes_on, Bytes mine, const Combine& combine);
  // It waits for them all the same.
  Outcome go_on(int rank, bool goes_on);
  // As arrive(), which ends with `failed`'s status where that says something before all have come.
  Outcome arrive_unless(const std::function<Status()>& failed, int rank, Bytes mine, const Combine& combine,
                        Status& failure);
  // That of the ranks which have brought that colour to that step.
  std::shared_ptr<InProcessJob> part_of(const std::shared_ptr<const Bytes>& step, int colour, int members);
  std::shared_ptr<Step> join_step(int rank, bool goes_on, Bytes mine, const Combine& combine);  // guard_ is held

  const int ranks_;
  std::unique_ptr<MemoryNetwork> network_;  // nullptr: no messages
  bool no_parts_ = false;
  std::mutex guard_;
  std::condition_variable changed_;
  std::shared_ptr<Step> step_;                       // that ranks arrive at
  int steps_ = 0;                                    // that are over
  std::vector<std::atomic<int>> words_;              // by rank: that were left for it; sleepers look often
  std::vector<std::vector<Notice>> notices_;         // likewise
  std::vector<std::pair<bool, std::string>> texts_;  // by rank: whether it has brought its own, for rank 0
  // By step and colour: those that not all of their ranks have yet, and how many have.
  std::map<std::pair<const Bytes*, int>, std::pair<std::shared_ptr<InProcessJob>, int>> parts_;
};

}  // namespace plait::runtime
