// Which of several candidates the calls of a class should go: each is tried in turn, and what was the fastest is taken,
// until it has become slower. A state machine without clock or messages: the caller times calls, and all ranks of the
// communicator bring their times together where it says so; everything else follows from the order of calls, so that
// all ranks go the same way.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plait::runtime {

// Times are in nanoseconds. Not thread-safe.
class Trial {
 public:
  static constexpr int host = 0;             // the other candidates are plans, the best predicted first
  static constexpr int most_candidates = 4;  // the host and three plans
  static constexpr int most_samples = 32;
  static constexpr std::uint32_t first_interval = 1024, longest_interval = 16384;  // calls between two looks

  // To be tried after so many calls, which go by the best predicted plan. `candidates`: 2 .. most_candidates. `burst`:
  // calls of one candidate in a row that make a sample.
  explicit Trial(int candidates, int burst = 1, std::uint32_t calls_before = 0);
  // Known from before to be fastest by `candidate`. Nanoseconds of a call; 0 of the host: not known.
  struct Known {
    int candidate;
    std::uint64_t taken_nanoseconds, host_nanoseconds;
  };
  Trial(int candidates, const Known& known, int burst = 1);

  // Whether the next call is to be timed, and takes candidate().
  bool due() const { return untimed_ <= 1; }
  // It is there.
  void count() { untimed_ -= untimed_ != 0 ? 1 : 0; }

  bool open() const { return open_; }
  // The candidate of calls that pass, and of those that are never timed: what was settled on; before that the best
  // predicted plan.
  int taken() const { return taken_; }
  int candidate() const;
  // Whether the next timed call is the first of a sample: the ranks have to meet before it.
  bool begins_sample() const { return in_burst_ == 0; }

  // A timed call is over: how long it took on this rank.
  void note(std::uint64_t nanoseconds);
  // Whether the ranks have to bring their samples together now, call for call the longest of all ranks.
  bool complete() const { return samples_.size() == wanted_ && in_burst_ == 0; }
  std::span<std::uint64_t> samples() { return samples_; }
  // samples() are those of all ranks. Whether taken() is another candidate than before.
  bool conclude();

  // What a call took when the trial was settled, the median; 0: not known.
  std::uint64_t taken_nanoseconds() const { return taken_nanoseconds_; }
  std::uint64_t host_nanoseconds() const { return host_nanoseconds_; }
  // Less than the host would have taken for the same calls, as measured by the trials. Below 0 never: the host would
  // have been taken.
  std::uint64_t saved_nanoseconds() const { return saved_ + saved_since_settled(); }
  int trials() const { return trials_; }  // begun so far

 private:
  void begin();
  void begin_stage();
  void conclude_stage();
  void conclude_look();
  void drop_slow_candidates();
  void settle();
  int fastest() const;
  int candidate_of(std::size_t sample) const;
  std::uint64_t value_of(int candidate) const;
  void watch_after(std::uint32_t calls);
  std::uint64_t saved_since_settled() const;

  std::uint32_t untimed_ = 1;  // first: it is what a settled call touches
  std::uint32_t granted_ = 1;  // what it was set to
  bool open_ = false;
  bool slower_ = false;  // at the last look
  int taken_ = host + 1;
  int candidates_;
  int burst_;
  int in_burst_ = 0;           // calls of the sample that is being taken
  std::uint64_t partial_ = 0;  // what they took
  int trials_ = 0;
  std::size_t stage_ = 0;
  std::size_t wanted_ = 0;  // samples
  std::uint32_t interval_ = first_interval;
  std::vector<int> left_;  // candidates that may still be the fastest
  std::vector<std::uint64_t> samples_;
  std::array<std::vector<std::uint64_t>, most_candidates> times_;  // of all ranks, by candidate
  std::uint64_t taken_nanoseconds_ = 0, host_nanoseconds_ = 0;
  std::uint64_t settled_calls_ = 0;  // without those of the interval that is running
  std::uint64_t saved_ = 0;          // before the trial was opened again
};

}  // namespace plait::runtime
