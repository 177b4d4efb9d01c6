#include "runtime/recorder/recorder.h"

#include <exception>
#include <functional>

#include "runtime/recorder/recording_json.h"

namespace plait::runtime {

namespace detail {
constinit std::atomic<Recorder*> recorder{nullptr};
}

std::size_t Recorder::KindHash::operator()(const CallKind& kind) const {
  std::size_t hash = static_cast<std::size_t>(kind.collective) * 64 + static_cast<std::size_t>(kind.form);
  for (const std::size_t part : {static_cast<std::size_t>(kind.communicator), std::hash<const void*>()(kind.type),
                                 std::hash<const void*>()(kind.op), std::hash<const void*>()(kind.site)})
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 31;
}

template <class Work>
void Recorder::record(Work&& work) noexcept {
  const std::scoped_lock lock(guard_);
  try {
    work();
  } catch (const std::exception&) {
    ++lost_;
  }
}

int Recorder::communicator(const std::vector<int>& world_ranks) noexcept {
  int number = static_cast<int>(most_communicators);
  record([&] {
    const auto found = communicators_.find(world_ranks);
    if (found == communicators_.end() && communicators_.size() >= most_communicators) return;
    number = communicators_.try_emplace(world_ranks, static_cast<int>(communicators_.size())).first->second;
  });
  return number;
}

std::uint32_t Recorder::index_of(const CallKind& kind) {
  const auto found = kinds_.find(kind);
  if (found != kinds_.end()) return found->second;
  if (kind_list_.size() >= most_kinds) return static_cast<std::uint32_t>(most_kinds - 1);
  kind_list_.push_back(kind);
  const auto index = static_cast<std::uint32_t>(kind_list_.size() - 1);
  kinds_.emplace(kind, index);
  return index;
}

std::uint64_t Recorder::add(const CallKind& kind, std::uint64_t bytes, Span time) {
  return folder_.add_call(index_of(kind), bytes, time);
}

void Recorder::add_call(const CallKind& kind, std::uint64_t bytes, Span time) noexcept {
  record([&] { add(kind, bytes, time); });
}

void Recorder::post(const CallKind& kind, std::uint64_t bytes, Span time, std::uint64_t request) {
  const std::uint64_t call = add(kind, bytes, time);
  if (posted_.size() >= most_requests && !posted_.contains(request)) {
    ++lost_;
    return;
  }
  Posted& posted = posted_[request];
  if (posted.begin_ns != 0) ++unwaited_;
  posted = {.call = call, .begin_ns = time.begin_ns, .complete_ns = 0};
}

void Recorder::add_posted(const CallKind& kind, std::uint64_t bytes, Span time, std::uint64_t request) noexcept {
  record([&] { post(kind, bytes, time, request); });
}

void Recorder::add_persistent(const CallKind& kind, std::uint64_t bytes, std::uint64_t request) noexcept {
  record([&] {
    if (persistent_.size() < most_requests || persistent_.contains(request))
      persistent_.insert_or_assign(request, PersistentCall{kind, bytes});
    else
      ++lost_;
  });
}

void Recorder::add_start(std::uint64_t request, std::uint64_t now_ns) noexcept {
  record([&] {
    const auto found = persistent_.find(request);
    if (found != persistent_.end()) post(found->second.kind, found->second.bytes, {now_ns, now_ns}, request);
  });
}

void Recorder::rename(std::uint64_t request, std::uint64_t renamed) noexcept {
  record([&] {
    if (auto made = persistent_.extract(request); !made.empty()) persistent_.insert_or_assign(renamed, made.mapped());
    if (auto started = posted_.extract(request); !started.empty()) posted_.insert_or_assign(renamed, started.mapped());
  });
}

void Recorder::forget(std::uint64_t request) noexcept {
  record([&] { persistent_.erase(request); });
}

void Recorder::note_complete(std::uint64_t request, std::uint64_t now_ns) noexcept {
  record([&] {
    const auto found = posted_.find(request);
    if (found != posted_.end()) found->second.complete_ns = now_ns;
  });
}

void Recorder::add_wait(std::uint64_t request, Span time) noexcept {
  record([&] {
    const auto found = posted_.find(request);
    if (found == posted_.end()) return;
    const Posted posted = found->second;
    posted_.erase(found);
    const std::uint64_t end_ns = posted.complete_ns != 0 ? posted.complete_ns : time.end_ns;
    folder_.add_wait(posted.call, time, end_ns > posted.begin_ns ? end_ns - posted.begin_ns : 0);
  });
}

void Recorder::add_mark() noexcept {
  record([&] { folder_.add_mark(); });
}

std::optional<plan::step::Step> Recorder::step_so_far(std::uint64_t times) const {
  const std::scoped_lock lock(guard_);
  const FoldedStep* step = folder_.step();
  if (step == nullptr || step->times < times) return {};
  return step_of(*step, kind_list_, "own step");
}

std::string Recorder::finish(const std::string& program) {
  const std::scoped_lock lock(guard_);
  folder_.finish();
  std::vector<std::vector<int>> communicators(communicators_.size());
  for (const auto& [ranks, number] : communicators_) communicators[static_cast<std::size_t>(number)] = ranks;
  return recording_json({.program = program,
                         .world_rank = world_rank_,
                         .folder = &folder_,
                         .kinds = kind_list_,
                         .communicators = communicators,
                         .lost = lost_,
                         .unwaited = unwaited_ + posted_.size()});
}

std::size_t Recorder::bytes() const {
  const std::scoped_lock lock(guard_);
  constexpr std::size_t node = 48;  // of a map, beside what it holds
  std::size_t bytes = folder_.bytes() + kind_list_.capacity() * sizeof(CallKind) +
                      kinds_.size() * (sizeof(CallKind) + node) + posted_.size() * (sizeof(Posted) + node) +
                      persistent_.size() * (sizeof(PersistentCall) + node);
  for (const auto& [ranks, number] : communicators_) bytes += ranks.capacity() * sizeof(int) + 2 * node;
  return bytes;
}

}  // namespace plait::runtime
