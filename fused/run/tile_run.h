// The runs of an operator on processors: a rank's workers take the tiles that it computes for others and for itself,
// have the operator compute them, and hand what is finished to the exchange. What a tile's cells are is the operator's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "fused/exchange/exchange.h"
#include "fused/layer.h"
#include "fused/tiles/tiles.h"
#include "fused/workers/crew.h"
#include "fused/workers/worker_count.h"
#include "runtime/record/worker_trace.h"
#include "runtime/team/team.h"

namespace plait::fused {

// A tile, and where it goes.
struct TilePlace {
  int owner = 0;
  const Slice& slice;
  const Tile& tile;
  Target target;  // of the slice's first row and column
  int worker = 0;
};

// What an operator does with slices that have come: tasks in chains, of which each is taken in its order.
struct Task {
  int chain = 0;
  std::uint32_t number = 0;
};

// What computes tiles: an operator.
class TileWork {
 public:
  virtual ~TileWork() = default;
  // Writes the tile's cells and nothing else. By several threads side by side.
  virtual void compute(const TilePlace& place) noexcept = 0;

  // How many tasks a chain has in this run; -1: that is not known yet.
  virtual std::int64_t tasks_of(int /*chain*/) const noexcept { return 0; }
  // Whether all that the task needs has come.
  virtual bool is_ready(const Task& /*task*/) const noexcept { return true; }
  // Does one that is ready, once all ranks are well: it may write into outputs. By several threads side by side.
  virtual void follow(const Task& /*task*/, int /*worker*/) noexcept {}
};

struct TileRunRequest {
  std::vector<Pane> panes;   // by owner
  std::vector<int> node_of;  // by rank
  Processors processors;
  int workers = 0;                 // 0: as many as the rank has processors
  bool aware = true;               // of communication, in the order of tiles
  bool keeps = false;              // slices are kept by their owners, also this rank's own: outputs are not written
  int chains = 0;                  // of tasks, the most urgent first
  bool tiles_first = false;        // tasks wait until no tile can be taken; else there is one after each tile
  bool serial = false;             // a chain's tasks are done one after the other; else only begun in their order
  std::string_view plan = "plan";  // what the operator is called, for PLAIT_TRACE

  int worker_count() const { return workers != 0 ? workers : processors.own; }
};

class TileRun {
 public:
  // Makes the workers; throws where that cannot be. `team` as for the exchange, whose blocks are the panes' slices.
  TileRun(TileWork& work, Team* team, std::unique_ptr<Exchange> exchange, TileRunRequest request);
  ~TileRun();
  TileRun(const TileRun&) = delete;
  TileRun& operator=(const TileRun&) = delete;

  // Not while one is under way, nor after a failure.
  Status may_start() const;
  // Begins a run, of which this rank may complain. Does not block; allocates nothing, but what a channel takes. With
  // one worker all is computed in wait().
  Status start(const Complaint* complaint);
  // Ends it: this rank's output is complete where the run was not refused(). After a failure there are no more runs.
  Status wait();
  // Between runs: this rank cannot go on, and no other waits for it for ever. There are no more runs. What to say of
  // it.
  Status break_off(const Status& cause);
  // Of the run that has ended: the lowest rank that has complained; none: all were well.
  const std::optional<Exchange::Refusal>& refusal() const { return exchange_->refusal(); }

  // For tiles and tasks that take long: moves on what goes by messages meanwhile.
  void breathe(int worker) noexcept;

  int workers() const { return crew_.workers(); }
  const Exchange& exchange() const { return *exchange_; }
  Exchange& exchange() { return *exchange_; }
  const std::vector<Pane>& panes() const { return panes_; }

 private:
  // Tiles that workers take in their order, once what they are for may be written.
  struct Queue {
    Lineup turns;
    std::vector<int> owners;
    alignas(64) std::atomic<std::uint32_t> next{0};  // the next that nobody has taken
  };
  enum class Take : std::uint8_t { one, later, none };
  struct Chain {
    alignas(64) std::atomic<std::uint32_t> next{0};  // the next that nobody has taken
    std::atomic<std::uint32_t> done{0};
  };
  struct Worker {
    TileRun& of;
    void operator()(int worker) const noexcept { of.serve(worker); }
  };

  void line_up_tiles(const TileRunRequest& request);
  void add_queue(std::vector<int> owners);
  void arm();
  void serve(int worker) noexcept;
  void work(int worker) noexcept;
  // And looks now and then whether other ranks have failed. `vain`: how often the worker has waited.
  void wait_in_vain(Patience& patience, int worker, std::uint32_t& vain);
  bool step(bool leads, int worker, std::size_t& first, Take& found);
  bool may_take(const Queue& queue) const;
  Take take(std::size_t& first, Turn& taken);
  void compute(const Turn& taken, int worker);
  bool follow_one(int worker);
  bool is_all_followed() const;
  void note(int worker, WorkerAct act, int peer, std::uint64_t begin_ns, std::uint64_t bytes = 0);

  TileWork& work_;
  Team* team_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<Pane> panes_;                                          // by owner
  std::vector<std::unique_ptr<std::atomic<std::uint32_t>[]>> left_;  // by owner and slice: tiles that are not done
  std::vector<std::unique_ptr<Queue>> queues_;                       // the most urgent first
  std::vector<Chain> chains_;
  const bool keeps_, tiles_first_, serial_;
  bool started_ = false;
  Status failure_;
  std::unique_ptr<WorkersTrace> trace_;  // nullptr: off
  std::uint32_t runs_ = 0;               // for it
  std::uint64_t began_ns_ = 0;           // likewise
  Worker worker_{*this};
  Crew crew_;  // last: its threads end first
};

}  // namespace plait::fused
