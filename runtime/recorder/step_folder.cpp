#include "runtime/recorder/step_folder.h"

#include <algorithm>
#include <utility>

#include "runtime/recorder/repeats.h"

namespace plait::runtime {
namespace {

constexpr std::size_t least_times = 3;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

std::uint64_t gap(std::uint64_t from, std::uint64_t to) { return to > from ? to - from : 0; }

}  // namespace

std::uint64_t StepFolder::token(const Event& event, Likeness likeness) {
  std::uint64_t hash = mixed(1, event.kind);
  if (likeness == Likeness::sizes_and_waits) hash = mixed(hash, event.bytes);
  if (likeness != Likeness::kinds)
    for (const Wait& wait : event.waits) hash = mixed(hash, event.number - wait.call);
  return hash;
}

std::uint64_t StepFolder::add_call(std::uint32_t kind, std::uint64_t bytes, Span time) {
  const std::uint64_t computed = calls_ == 0 && waits_.empty() ? 0 : gap(last_end_ns_, time.begin_ns);
  last_end_ns_ = time.end_ns;
  append({.kind = kind,
          .number = calls_,
          .bytes = bytes,
          .computed = computed,
          .begin_ns = time.begin_ns,
          .inside = time.length_ns(),
          .waits = std::exchange(waits_, {})});
  return calls_++;
}

void StepFolder::add_wait(std::uint64_t call, Span time, std::uint64_t took_ns) {
  if (waits_.size() < bounds_.waits_of_call)
    waits_.push_back(
        {call, gap(last_end_ns_, time.begin_ns), gap(std::max(last_end_ns_, time.begin_ns), time.end_ns), took_ns});
  else
    ++lost_waits_;
  last_end_ns_ = std::max(last_end_ns_, time.end_ns);
}

// Waits that came before it belong to the next step's first call, as they do without marks.
void StepFolder::add_mark() {
  if (marked_ && open_ > 0 && open_ <= bounds_.calls_of_step && open_ <= events_.size()) {
    const std::size_t first = events_.size() - open_;
    std::size_t index = know(first, open_, Likeness::sizes_and_waits);
    if (index == none) index = know(first, open_, Likeness::kinds);
    if (index != none) fold(known_[index], first);
  }
  if (!marked_) known_.clear();
  marked_ = true;
  followed_ = none;
  open_ = 0;
  events_.clear();
}

void StepFolder::append(Event event) {
  events_.push_back(std::move(event));
  if (marked_) {
    ++open_;
    if (events_.size() > bounds_.calls_of_step) events_.clear();  // too long: open_ says so
    return;
  }
  if (followed_ != none) return follow();
  meet_again();
  if (followed_ == none && events_.size() >= search_at_) search();
}

void StepFolder::follow() {
  Known& known = known_[followed_];
  const Event& event = events_.back();
  if (token(event, known.step.likeness) != known.tokens[open_]) {
    followed_ = none;
    open_ = 0;
    for (Known& other : known_) other.met = 0;
    search_at_ = std::max<std::size_t>(16, events_.size() * 2);
    return meet_again();
  }
  if (++open_ < known.tokens.size()) return;
  fold(known, events_.size() - open_);
  open_ = 0;
  events_.clear();
}

// Knuth, Morris and Pratt without their table: a step whose beginning comes again within itself may be met a step
// later.
void StepFolder::meet_again() {
  for (std::size_t index = 0; index < known_.size(); ++index) {
    Known& known = known_[index];
    const std::uint64_t now = token(events_.back(), known.step.likeness);
    if (now == known.tokens[known.met])
      ++known.met;
    else
      known.met = now == known.tokens[0] ? 1 : 0;
    if (known.met < known.tokens.size()) continue;
    fold(known, events_.size() - known.met);
    followed_ = index;
    events_.clear();
    for (Known& other : known_) other.met = 0;
    return;
  }
}

void StepFolder::search() {
  std::vector<std::uint64_t> tokens(events_.size());
  for (int level = 0; level < likeness_count; ++level) {
    const auto likeness = static_cast<Likeness>(level);
    std::ranges::transform(events_, tokens.begin(), [&](const Event& event) { return token(event, likeness); });
    const Repeat repeat = repeat_at_end(tokens, least_times, (tokens.size() + 1) / 2);
    if (repeat.length != 0 && take_up(repeat.length, repeat.first, likeness, tokens)) return;
  }
  if (events_.size() >= bounds_.window) forget(events_.size() / 2);
  search_at_ = std::min(events_.size() * 2, bounds_.window);
}

bool StepFolder::take_up(std::size_t length, std::size_t first, Likeness likeness,
                         const std::vector<std::uint64_t>& tokens) {
  if (length > bounds_.calls_of_step) return false;
  const std::size_t index = know(first, length, likeness);
  if (index == none) return false;
  Known& known = known_[index];
  for (; first + length <= tokens.size(); first += length) fold(known, first);
  followed_ = index;
  open_ = tokens.size() - first;
  forget(first);
  return true;
}

// The step of these events: one that is known, or a new one where there is room.
std::size_t StepFolder::know(std::size_t first, std::size_t length, Likeness likeness) {
  std::vector<std::uint64_t> tokens(length);
  for (std::size_t i = 0; i < length; ++i) tokens[i] = token(events_[first + i], likeness);
  const auto found = std::ranges::find_if(
      known_, [&](const Known& known) { return known.step.likeness == likeness && known.tokens == tokens; });
  if (found != known_.end()) return static_cast<std::size_t>(found - known_.begin());
  const std::size_t room = likeness == Likeness::kinds ? bounds_.steps : bounds_.steps / 2;
  if (known_.size() >= room) return none;
  Known& made = known_.emplace_back();
  made.tokens = std::move(tokens);
  made.step.likeness = likeness;
  made.step.calls.resize(length);
  for (std::size_t i = 0; i < length; ++i) made.step.calls[i].kind = events_[first + i].kind;
  return known_.size() - 1;
}

void StepFolder::fold(Known& known, std::size_t first) {
  FoldedStep& step = known.step;
  const std::uint64_t begin = events_[first].number;
  for (std::size_t i = 0; i < step.calls.size(); ++i) {
    const Event& event = events_[first + i];
    FoldedCall& call = step.calls[i];
    call.bytes.add(event.bytes);
    call.computed.add(event.computed);
    call.inside.add(event.inside);
    fold_waits(known, call, event, begin);
    step.ns += event.computed + event.inside;
  }
  ++step.times;
  known.next_number = begin + step.calls.size();
}

// What was waited for lies in this step, or in the one before if that was the same; else there is no task of it.
void StepFolder::fold_waits(Known& known, FoldedCall& call, const Event& event, std::uint64_t step_begin) {
  FoldedStep& step = known.step;
  for (const Wait& wait : event.waits) {
    step.ns += wait.computed + wait.waited;
    const bool previous = wait.call < step_begin;
    if (previous && (known.next_number != step_begin || step_begin - wait.call > step.calls.size())) continue;
    const auto index = static_cast<std::uint32_t>(wait.call - step_begin + (previous ? step.calls.size() : 0));
    auto found = std::ranges::find_if(
        call.waits, [&](const FoldedWait& folded) { return folded.call == index && folded.of_previous == previous; });
    if (found == call.waits.end()) {
      if (known.waits >= 4 * bounds_.calls_of_step) {
        ++lost_waits_;
        continue;
      }
      ++known.waits;
      found = call.waits.insert(found, {.call = index, .of_previous = previous, .computed = {}, .waited = {}});
    }
    found->computed.add(wait.computed);
    found->waited.add(wait.waited);
    step.calls[index].took.add(wait.took);
  }
}

void StepFolder::forget(std::size_t events) {
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(events));
}

void StepFolder::finish() {
  if (marked_)
    add_mark();
  else if (followed_ == none && !events_.empty())
    search();
}

const FoldedStep* StepFolder::step() const {
  const auto found = std::ranges::max_element(known_, {}, [](const Known& known) { return known.step.ns; });
  return found == known_.end() || found->step.times == 0 ? nullptr : &found->step;
}

std::uint64_t StepFolder::folded_calls() const {
  std::uint64_t folded = 0;
  for (const Known& known : known_) folded += known.step.times * known.step.calls.size();
  return folded;
}

std::size_t StepFolder::bytes() const {
  std::size_t bytes = events_.capacity() * sizeof(Event) + waits_.capacity() * sizeof(Wait);
  for (const Event& event : events_) bytes += event.waits.capacity() * sizeof(Wait);
  for (const Known& known : known_) {
    bytes += known.tokens.capacity() * sizeof(std::uint64_t) + known.step.calls.capacity() * sizeof(FoldedCall);
    for (const FoldedCall& call : known.step.calls) bytes += call.waits.capacity() * sizeof(FoldedWait);
  }
  return bytes;
}

}  // namespace plait::runtime
