#include "perf/pipeline_stage.h"

#include <algorithm>
#include <ctime>
#include <deque>
#include <utility>

namespace plait::perf {
namespace {

using plait::plan::PipelineTask;
using plait::plan::PipelineTaskKind;
using enum plait::plan::PipelineTaskKind;

constexpr double glance = 1e-4;  // seconds between two looks at the transfers

void sleep_until(double time) {
  const double left = time - now();
  if (left <= 0) return;
  const timespec wait{static_cast<time_t>(left),
                      static_cast<long>((left - static_cast<double>(static_cast<time_t>(left))) * 1e9)};
  nanosleep(&wait, nullptr);
}

std::size_t index_of(PipelineTaskKind kind) {
  return static_cast<std::size_t>(kind) - static_cast<std::size_t>(receive_activation);
}

// What a share begins and ends with.
unsigned char mark_of(PipelineTaskKind kind, int micro_batch, int owner) {
  const bool activation = kind == receive_activation || kind == send_activation;
  return static_cast<unsigned char>(1 + (micro_batch * 37 + owner * 11 + (activation ? 5 : 0)) % 251);
}

class Iteration {
 public:
  Iteration(const plait::plan::PipelineTasks& tasks, const plait::plan::PipelineStageCost& cost, bool weights_apart,
            bool overlap, StageLinks& links)
      : tasks_(tasks), cost_(cost), weights_apart_(weights_apart), overlap_(overlap), links_(links) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    me_ = rank;
    for (const PipelineTask& task : tasks)
      if (!plait::plan::computes(task.kind)) done_[index_of(task.kind)].resize(tasks.size(), 0);
  }

  int run() {
    if (overlap_)
      for (const PipelineTask& task : tasks_)
        if (!plait::plan::computes(task.kind) && !plait::plan::sends(task.kind)) queue(task);
    for (std::size_t at = 0; at < tasks_.size(); ++at) {
      if (plait::plan::computes(tasks_[at].kind))
        compute(tasks_[at].kind);
      else if (overlap_)
        transfer(tasks_[at]);
      else
        at = transfer_together(at);
    }
    while (!idle()) rest();
    return wrong_;
  }

 private:
  // Its transfers go one by one: what is queued, and what is under way.
  struct Lane {
    std::deque<PipelineTask> queue;
    bool busy = false;
  };

  void compute(PipelineTaskKind kind) {
    const double backward_seconds = weights_apart_ ? cost_.backward : cost_.backward + cost_.weight;
    const double seconds = kind == forward ? cost_.forward : kind == weight ? cost_.weight : backward_seconds;
    meet();
    const double end = now() + seconds;
    while (now() < end) {
      look();
      sleep_until(std::min(end, now() + glance));
    }
  }

  // The stage's ranks, by empty messages: what is measured are transfers, whoever runs collectives.
  void meet() {
    std::vector<MPI_Request> requests;
    for (int peer = 0; peer < links_.ranks(); ++peer) {
      if (peer == owner_of_mine()) continue;
      MPI_Isend(nullptr, 0, MPI_BYTE, peer, 0, links_.together(), &requests.emplace_back());
      MPI_Irecv(nullptr, 0, MPI_BYTE, peer, 0, links_.together(), &requests.emplace_back());
    }
    for (int there = 0; there == 0;) {
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &there, MPI_STATUSES_IGNORE);
      if (there == 0) rest();
    }
  }

  void transfer(const PipelineTask& task) {
    if (plait::plan::sends(task.kind)) return queue(task);
    while (!done(task)) rest();
  }

  // All up to the next computing task; the last one's place.
  std::size_t transfer_together(std::size_t at) {
    std::size_t end = at;
    for (; end < tasks_.size() && !plait::plan::computes(tasks_[end].kind); ++end) queue(tasks_[end]);
    while (!idle()) rest();
    return end - 1;
  }

  void queue(const PipelineTask& task) {
    if (plait::plan::sends(task.kind)) fill(task);
    lanes_[index_of(task.kind)].queue.push_back(task);
    look();
  }

  void rest() {
    look();
    sleep_until(now() + glance);
  }

  bool idle() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.queue.empty(); });
  }

  char& done(const PipelineTask& task) {
    return done_[index_of(task.kind)][static_cast<std::size_t>(task.micro_batch)];
  }

  std::vector<char>& buffer(const PipelineTask& task) {
    return links_.link(task.kind).buffers[static_cast<std::size_t>(task.micro_batch)];
  }

  // Ends what has ended, begins what can begin.
  void look() {
    for (Lane& lane : lanes_) {
      if (lane.queue.empty()) continue;
      const PipelineTask task = lane.queue.front();
      Channel& channel = *links_.link(task.kind).channel;
      if (!std::exchange(lane.busy, true)) channel.start(buffer(task).data());
      if (!channel.ended()) continue;
      lane.busy = false;
      lane.queue.pop_front();
      done(task) = 1;
      if (!plait::plan::sends(task.kind)) check(task);
    }
  }

  void fill(const PipelineTask& task) {
    std::vector<char>& share = buffer(task);
    share.front() = share.back() = static_cast<char>(mark_of(task.kind, task.micro_batch, owner_of_mine()));
  }

  int owner_of_mine() const { return me_ % ranks(); }
  int ranks() const { return links_.ranks(); }

  void check(const PipelineTask& task) {
    const StageLinks::Link& link = links_.link(task.kind);
    std::vector<char>& taken = buffer(task);
    const std::size_t shares = link.buffer_bytes / link.share_bytes;
    for (std::size_t share = 0; share < shares; ++share) {
      const int owner = shares == 1 ? owner_of_mine() : static_cast<int>(share);
      const char mark = static_cast<char>(mark_of(task.kind, task.micro_batch, owner));
      char& first = taken[share * link.share_bytes];
      char& last = taken[(share + 1) * link.share_bytes - 1];
      if (first != mark || last != mark) ++wrong_;
      first = last = 0;  // so that the next iteration's is seen
    }
  }

  const plait::plan::PipelineTasks& tasks_;
  const plait::plan::PipelineStageCost& cost_;
  bool weights_apart_, overlap_;
  StageLinks& links_;
  int me_ = 0, wrong_ = 0;
  std::array<Lane, 4> lanes_;
  std::array<std::vector<char>, 4> done_;
};

}  // namespace

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

StageLinks::StageLinks(Road road, int stages, int ranks, std::size_t share_bytes, Layout layout, int micro_batches)
    : ranks_(ranks) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  stage_ = rank / ranks;
  MPI_Comm_split(MPI_COMM_WORLD, stage_, rank, &together_);
  for (int boundary = 0; boundary + 1 < stages && why_.empty(); ++boundary)
    for (const bool activation : {true, false}) {
      Crossing crossing{.ranks = ranks, .share_bytes = share_bytes, .layout = layout};
      crossing.from = activation ? boundary : boundary + 1;
      crossing.to = activation ? boundary + 1 : boundary;
      auto channel = make_channel(road, crossing, activation ? 0 : 1, why_);
      if (channel == nullptr) continue;
      const bool sends = stage_ == crossing.from;
      add(activation ? (sends ? send_activation : receive_activation) : (sends ? send_gradient : receive_gradient),
          std::move(channel), crossing, micro_batches);
    }
}

StageLinks::~StageLinks() { MPI_Comm_free(&together_); }

void StageLinks::add(PipelineTaskKind kind, std::unique_ptr<Channel> channel, const Crossing& crossing,
                     int micro_batches) {
  Link& link = this->link(kind);
  link.channel = std::move(channel);
  link.sends = plait::plan::sends(kind);
  link.share_bytes = crossing.share_bytes;
  link.buffer_bytes = link.sends ? crossing.share_bytes : crossing.taken_bytes();
  link.buffers.assign(static_cast<std::size_t>(micro_batches), std::vector<char>(link.buffer_bytes));
}

StageLinks::Link& StageLinks::link(PipelineTaskKind kind) { return links_[index_of(kind)]; }

double run_iteration(const plait::plan::PipelineTasks& tasks, const plait::plan::PipelineStageCost& cost,
                     bool weights_apart, bool overlap, StageLinks& links, int& wrong) {
  Iteration iteration(tasks, cost, weights_apart, overlap, links);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now();
  wrong += iteration.run();
  return now() - begin;
}

double transfer_alone(StageLinks& links, int repeats, double rest) {
  std::vector<double> taken;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    sleep_until(now() + rest);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = 0;
    if (links.stage() <= 1) {
      StageLinks::Link& link = links.link(links.stage() == 0 ? send_activation : receive_activation);
      const double begin = now();
      link.channel->start(link.buffers.front().data());
      while (!link.channel->ended()) sleep_until(now() + glance);
      if (!link.sends) seconds = now() - begin;
    }
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    taken.push_back(seconds);
  }
  std::nth_element(taken.begin(), taken.begin() + repeats / 2, taken.end());
  return taken[static_cast<std::size_t>(repeats / 2)];
}

}  // namespace plait::perf
