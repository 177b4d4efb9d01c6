#include "tuner/measure/limit_measure.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "core/reduction.h"
#include "topo/discovery.h"
#include "tuner/measure/limit_moves.h"
#include "tuner/measure/node_segment.h"

namespace plait::tuner {
namespace {

constexpr std::size_t smallest_bytes = 8, growth = 4;
constexpr std::size_t stream_from = 4096;  // below, streaming stores never pay
constexpr std::size_t line_bytes = 64;
constexpr std::size_t cold_bytes = std::size_t{64} << 20;  // walked through, so that caches do not help
constexpr int batches = 3, most_moves = 1000000;
constexpr double longest_throw_s = 0.02;
constexpr std::uint64_t last_throw = ~std::uint64_t{0};

// One move of so many bytes that lie `offset` bytes into the buffers. False when it cannot be done.
using Move = std::function<bool(std::size_t offset, std::size_t bytes)>;

class Block {
 public:
  explicit Block(std::size_t bytes)
      : memory_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{4096}, std::nothrow))) {
    if (memory_) std::memset(memory_.get(), 1, bytes);
  }
  std::byte* data() const { return memory_.get(); }

 private:
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{4096}); }
  };
  std::unique_ptr<std::byte, Release> memory_;
};

// Of one rank's batch, on the clock that all processes of a node share; nothing where another rank works alone.
struct Span {
  double begin_s = HUGE_VAL, end_s = -HUGE_VAL;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Who moves, and whether the bytes are in a cache.
struct Setting {
  bool alone = false;
  bool cold = false;
};

class LimitRun {
 public:
  LimitRun(MpiSession& session, const LimitOptions& options, NodeSegment segment)
      : session_(session),
        options_(options),
        segment_(std::move(segment)),
        bytes_(buffer_bytes(options)),
        source_(bytes_),
        target_(bytes_) {}

  static std::size_t buffer_bytes(const LimitOptions& options) {
    return options.only_what_bounds ? options.largest_bytes : std::max(options.largest_bytes, cold_bytes);
  }

  Result<NodeLimits> run() {
    const std::array failed = {source_.data() == nullptr || target_.data() == nullptr ? 1.0 : 0.0};
    if (session_.maxima(failed)[0] > 0) return {Code::unavailable, "no memory on some rank to measure limits with"};
    std::memset(segment_.mine(), 1, options_.largest_bytes);
    find_neighbours_source();
    NodeLimits limits;
    limits.ranks = session_.ranks();
    limits.cores = count_cores();
    measure_bounding(limits);
    if (!options_.only_what_bounds) measure_others(limits);
    measure_round_trips(limits);
    return limits;
  }

 private:
  void measure_bounding(NodeLimits& limits) {
    const Setting together = {};
    limits.copy_all = copy_curve(together);
    limits.reduce_i32_all = curve(reduction(Element::i32), together);
    limits.pull_all = curve(pulling(), together);
    limits.mapped_all = mapped_curve(together);
  }

  void measure_others(NodeLimits& limits) {
    const Setting alone = {.alone = true};
    limits.copy_one = copy_curve(alone);
    limits.copy_one_cold = copy_curve({.alone = true, .cold = true});
    limits.copy_all_cold = copy_curve({.alone = false, .cold = true});
    limits.reduce_i32_one = curve(reduction(Element::i32), alone);
    limits.reduce_f32_one = curve(reduction(Element::f32), alone);
    limits.reduce_f32_all = curve(reduction(Element::f32), {});
    limits.pull_one = curve(pulling(), alone);
    limits.mapped_one = mapped_curve(alone);
  }

  // ---- What is moved ----

  Move ordinary(const std::byte* from) const {
    return [this, from](std::size_t offset, std::size_t bytes) {
      std::memcpy(target_.data() + offset, from + offset, bytes);
      return true;
    };
  }
  Move streaming(const std::byte* from) const {
    return [this, from](std::size_t offset, std::size_t bytes) {
      copy_streaming(target_.data() + offset, from + offset, bytes);
      return true;
    };
  }
  Move reduction(Element element) const {
    const ReduceKernel kernel = reduce_kernel(Op::sum, element);
    // The shared memory serves as the second operand.
    return [this, kernel](std::size_t offset, std::size_t bytes) {
      kernel(target_.data() + offset, source_.data() + offset, segment_.mine() + offset, bytes / 4);
      return true;
    };
  }
  Move pulling() const {
    return [this](std::size_t offset, std::size_t bytes) {
      return pull(segment_.neighbour_process(), target_.data() + offset, neighbours_source_ + offset, bytes);
    };
  }

  void find_neighbours_source() {
    const auto mine = reinterpret_cast<std::uint64_t>(source_.data());
    const auto all = session_.gather_bytes(std::as_bytes(std::span(&mine, 1)));
    std::uint64_t address = 0;
    const auto next = static_cast<std::size_t>((session_.rank() + 1) % session_.ranks());
    std::memcpy(&address, all.data() + next * sizeof address, sizeof address);
    neighbours_source_ = reinterpret_cast<const std::byte*>(address);
  }

  // ---- Curves ----

  MoveCurve copy_curve(Setting setting) { return best_curve(source_.data(), setting); }
  MoveCurve mapped_curve(Setting setting) { return best_curve(segment_.neighbour(), setting); }

  // The better of the two kinds of stores at each size.
  MoveCurve best_curve(const std::byte* from, Setting setting) {
    MoveCurve best = curve(ordinary(from), setting);
    const MoveCurve past_caches = curve(streaming(from), setting, stream_from);
    const std::size_t skipped = best.size() - past_caches.size();
    for (std::size_t index = 0; index < past_caches.size(); ++index) {
      MovePoint& point = best[skipped + index];
      point.seconds = std::min(point.seconds, past_caches[index].seconds);
    }
    return best;
  }

  // Empty where some rank cannot move so.
  MoveCurve curve(const Move& move, Setting setting, std::size_t from_bytes = 0) {
    MoveCurve points;
    for (std::size_t bytes = smallest_bytes;; bytes = std::min(bytes * growth, options_.largest_bytes)) {
      if (bytes >= from_bytes) {
        const double seconds = seconds_of(move, setting, bytes);
        if (!std::isfinite(seconds)) return {};
        points.push_back({bytes, seconds});
      }
      if (bytes >= options_.largest_bytes) return points;
    }
  }

  // The fastest of some batches, each as slow as its slowest rank. Infinite when some rank cannot move so.
  double seconds_of(const Move& move, Setting setting, std::size_t bytes) {
    const double trial = batch_seconds(move, setting, bytes, 1);  // also touches the memory
    if (!std::isfinite(trial)) return trial;
    int moves = 1;
    double once = trial;
    while (once * moves < options_.seconds / 4 && moves < most_moves) {
      moves = std::min(moves * 8, most_moves);
      once = batch_seconds(move, setting, bytes, moves) / moves;
    }
    const double fitting = std::clamp(options_.seconds / batches / once, 1.0, double{most_moves});
    moves = static_cast<int>(fitting);
    double best = once;
    for (int batch = 0; batch < batches; ++batch) {
      best = std::min(best, batch_seconds(move, setting, bytes, moves) / moves);
    }
    return best;
  }

  double agreed(double seconds) { return session_.maxima(std::array{seconds})[0]; }

  // From the first rank's start to the last one's end: where ranks outnumber cores they may run one after the other.
  double batch_seconds(const Move& move, Setting setting, std::size_t bytes, int moves) {
    const Span mine = run_batch(move, setting, bytes, moves);
    const auto outer = session_.maxima(std::array{mine.end_s, -mine.begin_s});
    return outer[0] + outer[1];
  }

  Span run_batch(const Move& move, Setting setting, std::size_t bytes, int moves) {
    segment_.sleep_until_all_arrive();
    segment_.wait_until_all_are_awake();
    Span span;
    if (!setting.alone || session_.rank() == 0) {
      const std::size_t stride = setting.cold ? std::max(bytes, line_bytes) : 0;
      std::size_t offset = cold_offset_;
      span.begin_s = now_seconds();
      for (int done = 0; done < moves; ++done) {
        if (offset + bytes > bytes_ || stride == 0) offset = 0;
        if (!move(offset, bytes)) return give_up();
        offset += stride;
      }
      span.end_s = now_seconds();
      if (setting.cold) cold_offset_ = offset;
    }
    segment_.sleep_until_all_arrive();
    return span;
  }

  Span give_up() {
    segment_.sleep_until_all_arrive();
    return {.begin_s = now_seconds(), .end_s = HUGE_VAL};
  }

  // ---- Round trips ----

  // Of all ranks together.
  int count_cores() {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    std::vector<double> allowed(CPU_SETSIZE);
    for (int core = 0; core < CPU_SETSIZE; ++core) allowed[static_cast<std::size_t>(core)] = CPU_ISSET(core, &mine);
    const auto any = session_.maxima(allowed);
    const auto bound = static_cast<int>(std::count(any.begin(), any.end(), 1.0));
    // A cgroup may grant less than the affinities; every rank sees the same grant.
    const auto granted = session_.maxima(std::array{static_cast<double>(discover_location().cores_allowed)})[0];
    return CPU_COUNT(&mine) < bound ? bound : std::min(bound, static_cast<int>(granted));
  }

  void measure_round_trips(NodeLimits& limits) {
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    if (limits.cores > 1) {
      move_to_core(nth_core(before, session_.rank(), limits.cores));
      limits.spin_round_trip_s = round_trip_seconds(false);
    }
    sched_setaffinity(0, sizeof before, &before);
    segment_.sleep_until_all_arrive();
    share_first_ranks_core();
    limits.yield_round_trip_s = round_trip_seconds(true);
    sched_setaffinity(0, sizeof before, &before);
  }

  // A core of its own for each of the first two ranks, if their affinities let them.
  static int nth_core(const cpu_set_t& allowed, int rank, int cores) {
    int wanted = CPU_COUNT(&allowed) > 1 ? rank % std::min(cores, CPU_COUNT(&allowed)) : 0;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &allowed) && wanted-- == 0) return core;
    }
    return 0;
  }

  static void move_to_core(int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }

  void share_first_ranks_core() {
    if (session_.rank() == 0) {
      const int core = sched_getcpu();
      move_to_core(core);
      segment_.flags().core.store(core);
    }
    segment_.sleep_until_all_arrive();
    if (session_.rank() == 1) move_to_core(segment_.flags().core.load());
  }

  // The first two ranks throw the ball; the others sleep.
  double round_trip_seconds(bool yields) {
    if (session_.rank() == 0) segment_.flags().ball.store(0);
    segment_.sleep_until_all_arrive();
    double seconds = 0;
    if (session_.rank() == 0) seconds = throw_ball(segment_.flags().ball, yields);
    if (session_.rank() == 1) return_ball(segment_.flags().ball, yields);
    segment_.sleep_until_all_arrive();
    return agreed(seconds);
  }

  double throw_ball(std::atomic<std::uint64_t>& ball, bool yields) const {
    const double begin_s = session_.wall_seconds();
    std::uint64_t rounds = 0;
    double spent_s = 0;
    while (spent_s < longest_throw_s) {
      for (int burst = 0; burst < 16; ++burst, ++rounds) {
        ball.store(2 * rounds + 1, std::memory_order_release);
        while (ball.load(std::memory_order_acquire) != 2 * rounds + 2) wait_a_moment(yields);
      }
      spent_s = session_.wall_seconds() - begin_s;
    }
    ball.store(last_throw, std::memory_order_release);
    return spent_s / static_cast<double>(rounds);
  }

  static void return_ball(std::atomic<std::uint64_t>& ball, bool yields) {
    for (;;) {
      const std::uint64_t seen = ball.load(std::memory_order_acquire);
      if (seen == last_throw) return;
      if (seen % 2 == 1) {
        ball.store(seen + 1, std::memory_order_release);
      } else {
        wait_a_moment(yields);
      }
    }
  }

  static void wait_a_moment(bool yields) {
    if (yields) sched_yield();
  }

  MpiSession& session_;
  const LimitOptions options_;
  NodeSegment segment_;
  std::size_t bytes_;  // of source and target
  Block source_, target_;
  const std::byte* neighbours_source_ = nullptr;
  std::size_t cold_offset_ = 0;
};

}  // namespace

Result<NodeLimits> measure_limits(MpiSession& session, const LimitOptions& options) {
  auto segment = NodeSegment::make(session, LimitRun::buffer_bytes(options));
  if (!segment.ok()) return segment.status();
  return LimitRun(session, options, std::move(*segment)).run();
}

}  // namespace plait::tuner
