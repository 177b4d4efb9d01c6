// Which of several candidates the calls of a class should go by: tried where that is worth it, settled, and watched
// until it has become slower. A decision problem (docs/tuning.md): a sample of another candidate costs what it is
// expected to take longer, and promises what each later call may gain; it is taken once the class has had so many calls
// that as many again would pay for it, and never so that samples take more than a share of the class's time.
//
// A state machine without clock or messages: the caller times calls, and all ranks of the communicator bring their
// times together where it says so; everything else follows from the order of calls, so that all ranks go the same way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/trial/belief.h"

namespace plait::runtime {

// How a class is tried. Times are in nanoseconds, of a call of the usual size.
struct TrialTerms {
  static constexpr double usual_part = 1.0 / 50;
  std::size_t bytes = 0;                    // the usual size: the class's shortest, others have up to twice as many
  double fixed_bytes = 0;                   // what a call takes besides its bytes, as bytes
  int burst = 1;                            // calls of one candidate in a row that make a sample
  std::uint32_t calls_before = 0;           // that go untried
  double part = usual_part;                 // of the class's time at most that samples of other candidates take, as far
                                            // as can be foreseen; with more, they are taken sooner as well
  std::uint64_t meeting_nanoseconds = 0;    // what a sample takes besides its calls: the ranks meet
  std::uint64_t agreeing_nanoseconds = 0;   // what a round takes besides its samples: the ranks agree on times
  std::uint64_t making_nanoseconds = 0;     // to make a plan that was not called yet, until it is seen how long that is
  std::uint64_t predicted_nanoseconds = 0;  // of the best predicted plan; 0: not known
  std::uint64_t least_nanoseconds = 0;      // no plan can be faster; 0: not known
  std::uint64_t hosts_least_nanoseconds = 0;  // likewise of the host, whose way through the network may be another
};

// Times are in nanoseconds. Not thread-safe.
class Trial {
 public:
  static constexpr int host = 0;             // the other candidates are plans, the best predicted first
  static constexpr int most_candidates = 4;  // the host and three plans
  static constexpr int most_samples = 5;     // numbers that the ranks bring together at a time
  static constexpr std::uint32_t first_interval = 1024, longest_interval = 16384;  // calls between two looks

  // To be tried. `prospects`: by candidate, 2 .. most_candidates, ratios to the best predicted plan. The first calls
  // go by the candidate that is expected to be the fastest.
  Trial(std::vector<Prospect> prospects, const TrialTerms& terms);
  // Without any, of a class that nothing is planned for yet: the host has its calls until one is due() after so many.
  explicit Trial(std::uint32_t calls_by_host);
  // Known from before to be fastest by `candidate`. Nanoseconds of a call; 0 of the host: not known.
  struct Known {
    int candidate;
    std::uint64_t taken_nanoseconds, host_nanoseconds;
  };
  Trial(std::vector<Prospect> prospects, const TrialTerms& terms, const Known& known);

  // Whether the next call is to be timed, and takes candidate().
  bool due() const { return untimed_ <= 1; }
  // It is there.
  void count() { untimed_ -= untimed_ != 0 ? 1 : 0; }

  bool planned() const { return !prospects_.empty(); }
  bool open() const { return open_; }
  // Whether every other candidate has been tried, or could hardly be faster: enough for other communicators to go by.
  bool informed() const;
  // The candidate of calls that are not timed.
  int taken() const { return taken_; }
  int candidate() const;
  // Whether the next timed call is the first of a sample: the ranks have to meet before it.
  bool begins_sample() const { return in_burst_ == 0; }

  // A timed call of so many bytes is over: how long it took on this rank.
  void note(std::uint64_t nanoseconds, std::size_t bytes = 0);
  // This rank has made a plan of that candidate, for a call of the class.
  void note_making(int candidate, std::uint64_t nanoseconds);
  // What is known of the host has changed; no more than a hint once it was timed. Whether taken() is another candidate
  // than before: where the class has had no call yet.
  bool expect_of_host(Prospect prospect);
  // Whether the ranks have to bring their samples together now, call for call the longest of all ranks.
  bool complete() const { return samples_.size() >= wanted_ && in_burst_ == 0; }
  // What they bring together: those, and of a trial that is open what this rank has spent besides.
  std::span<std::uint64_t> samples() { return samples_; }
  // samples() are those of all ranks. Whether taken() is another candidate than before.
  bool conclude();

  // What a call takes, the median of the samples so far; 0: not known.
  std::uint64_t taken_nanoseconds() const { return taken_nanoseconds_; }
  std::uint64_t host_nanoseconds() const { return host_nanoseconds_; }
  std::uint64_t plan_nanoseconds() const { return plan_nanoseconds_; }  // of the fastest plan
  // Less than the host would have taken for the same calls, as measured by the trials. Below 0 never: the host would
  // have been taken.
  std::uint64_t saved_nanoseconds() const { return saved_ + saved_lately(); }
  int trials() const { return trials_; }  // begun so far

 private:
  // What is known of a candidate while the trial is open.
  struct Candidate {
    explicit Candidate(Prospect prospect) : belief(prospect) {}
    Belief belief;                     // ratios to reference_
    std::vector<std::uint64_t> times;  // samples that count
    int seen = 0;                      // samples
  };
  struct Turn {
    int candidate;
    double due;  // so many calls of the class
  };

  std::uint64_t at_usual_size(std::uint64_t nanoseconds, std::size_t bytes) const;
  void begin(std::uint32_t calls_before);
  void begin_round(std::span<const int> turns, std::uint32_t calls_before);
  void rest();
  void pass();
  void conclude_round();
  void take_what_was_spent();
  void take_reference();
  void refer_to_taken();
  Prospect expected_of(int candidate) const;
  void take_sample(int candidate, std::uint64_t nanoseconds);
  void take_faster();
  void go_on();
  std::optional<Turn> next_turn() const;
  double cost_of(int candidate) const;            // of its next sample, as a ratio to reference_
  double pays_of(int candidate) const;            // after so many calls of the class it pays
  double fits_of(int candidate) const;            // and fits
  double gain_of(int candidate) const;            // what each call may gain, as a part of what it takes
  std::uint64_t besides_of(int candidate) const;  // what its next sample takes besides its calls
  double must_be_below(int candidate) const;      // to be taken: a ratio to the taken one's time
  double least_ratio(int candidate) const;
  void conclude_look();
  void settle();
  Candidate& of(int candidate) { return candidates_[static_cast<std::size_t>(candidate)]; }
  const Candidate& of(int candidate) const { return candidates_[static_cast<std::size_t>(candidate)]; }
  std::uint64_t time_of(int candidate) const;  // 0: not known
  std::uint64_t time_of_fastest_plan() const;  // likewise
  void watch();
  void watch_after(std::uint32_t calls);
  std::uint64_t nanoseconds_besides(std::size_t samples) const;  // that a round of so many takes
  std::uint64_t less_than_host() const;                          // nanoseconds a call
  std::uint64_t saved_lately() const;

  std::uint32_t untimed_ = 1;  // first: it is what a settled call touches
  std::uint32_t granted_ = 1;  // what it was set to
  bool open_ = false;
  bool slower_ = false;  // at the last look
  int taken_;
  TrialTerms terms_;
  std::vector<Prospect> prospects_;
  int in_burst_ = 0;           // calls of the sample that is being taken
  std::uint64_t first_ = 0;    // what the first of several took
  std::uint64_t partial_ = 0;  // what the others took
  std::uint64_t besides_ =
      0;  // on this rank, since the last round: first calls longer than others, plans made for samples
  std::uint64_t own_making_ = 0;  // the longest of this rank
  int trials_ = 0;
  int rounds_ = 0;                         // of the open trial
  std::array<int, most_samples> turns_{};  // candidates of the round's samples
  std::size_t wanted_ = 0;                 // samples of the round
  std::uint32_t interval_ = first_interval;
  std::vector<std::uint64_t> samples_;
  std::vector<Candidate> candidates_;  // empty unless open
  int referred_ = host;                // whose time the others' were expected by
  double reference_ = 0;               // nanoseconds, to which ratios are
  double unit_ = 0;                    // likewise, of prospects_
  double noise_ = 0;                   // octaves
  double calls_ = 0;                   // of the class, in all trials
  double passed_ = 0;                  // nanoseconds that these took, once that is known
  double spent_ = 0;                   // of which by samples: what they took longer than the candidate that was taken
  std::uint64_t making_ = 0;           // nanoseconds of making a plan, the longest of all ranks; 0: not known
  std::size_t call_bytes_;             // of the last timed call
  std::uint64_t taken_nanoseconds_ = 0, host_nanoseconds_ = 0, plan_nanoseconds_ = 0;
  std::uint64_t saved_ = 0;  // by calls before those that are not timed now
};

}  // namespace plait::runtime
