// PLAIT_SCHEDULE=auto: how the ranks of a communicator come to a schedule made from its own calls, all at the same
// call.
//
// Before some calls, the same on all ranks, they talk by a reduction of two numbers. The first rank has a word to say:
// that there is a schedule, whose text follows; that it is to be kept to; that it is dropped. The others say how far
// they are with it. So a schedule comes into force in two phases: all ranks prepare it beside the program (each in a
// thread of low priority) and say so; once all have, one word of the first rank lets all of them begin at the call
// before which it is said. Where a rank cannot prepare it, or takes too long, all stay with what they had.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "plan/step/schedule_file.h"
#include "runtime/enforcer/known_schedule.h"
#include "runtime/layer.h"
#include "runtime/progress/consultation.h"

namespace plait::runtime {

// Where the first rank's schedules come from. Thread-safe.
class ScheduleSource {
 public:
  enum class State : std::uint8_t { working, written, without };
  virtual ~ScheduleSource() = default;
  virtual State state() const = 0;
  // In State::written: the schedule. In State::without: why there is none.
  virtual const plan::step::StepSchedule& schedule() const = 0;
  virtual const std::string& reason() const = 0;
  // Works on another one, for a machine whose network is so many times as slow as that of the last one.
  virtual void begin_again(double slowness) = 0;
};

// For the thread that is busy with progress(), but for the threads that it starts.
class ScheduleControl {
 public:
  // Looks up the plans of a schedule, in a thread of its own. The result is the same on all ranks where memory is not
  // short.
  using Prepare = std::function<Result<std::unique_ptr<KnownSchedule>>(const plan::step::StepSchedule&)>;

  // `source`: of the first rank; nullptr on the others. `talk` outlives it.
  ScheduleControl(Team& talk, std::unique_ptr<ScheduleSource> source, Prepare prepare);
  ~ScheduleControl();
  ScheduleControl(const ScheduleControl&) = delete;
  ScheduleControl& operator=(const ScheduleControl&) = delete;

  // While no schedule is in force they talk before each so many-th call; else before epochs, which end after so many
  // iterations.
  static constexpr std::uint64_t calls_between = 16, iterations_between = 32;

  // Nothing is talked about any more.
  bool is_over() const { return state_ == State::over; }
  enum class Outcome : std::uint8_t { waiting, moved, decided };
  // Until it is decided. Precondition: !is_over().
  Result<Outcome> consult(bool may_call_host);
  // What was decided: true where another schedule than before is looked up or kept to from here on.
  bool changes(std::unique_ptr<KnownSchedule>& schedule);

  // An iteration of the schedule that is looked up took so long.
  void note_iteration(std::uint64_t nanoseconds) noexcept;

 private:
  enum class State : std::uint8_t { watching, preparing, comparing, in_force, over };
  enum class Change : std::uint8_t { none, look_up, keep, drop };
  enum class Word : std::int64_t { nothing, drop, give_up, keep, first_length };  // from the last on: of a text

  std::int64_t own_word();
  std::int64_t word_of_offer();
  std::int64_t judge();
  Result<Outcome> talk(bool may_call_host);
  Result<Outcome> hear_text(bool may_call_host);
  void send_part();
  void take_part();
  void decide(std::int64_t word, std::int64_t least);
  void begin_preparing();
  void end_preparing();
  void say(const std::string& what) const;

  const std::unique_ptr<ScheduleSource> source_;
  const Prepare prepare_;
  Consultation words_, texts_;
  enum class Talk : std::uint8_t { none, words, text };
  Talk talk_ = Talk::none;
  std::array<std::int64_t, 2> numbers_{};
  std::vector<std::int64_t> part_;
  bool part_under_way_ = false;
  std::string text_;
  std::size_t heard_ = 0, length_ = 0;  // bytes of it

  State state_ = State::watching;
  Change change_ = Change::none;
  bool keeps_ = false;  // a schedule is in force
  std::thread preparer_;
  std::atomic<int> prepared_{0};  // 1: the candidate is there; -1: it cannot be
  std::unique_ptr<KnownSchedule> candidate_;

  // Of the first rank.
  std::string offered_, best_;  // texts
  double best_ns_ = 0, plain_ns_ = 0, predicted_s_ = 0;
  int revisions_left_ = 2;
  bool judged_ = false, revising_ = false;
  std::uint64_t preparing_since_ns_ = 0;
  std::array<std::uint64_t, 16> iterations_{};  // the last ones
  std::size_t iterations_noted_ = 0;
};

}  // namespace plait::runtime
