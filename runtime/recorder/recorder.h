// PLAIT_RECORD: this process's collective calls, folded into the step that it repeats (docs/record.md). It knows no
// MPI: requests are keys, communicators the ranks of MPI_COMM_WORLD that they are made of.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/step/step_file.h"
#include "runtime/layer.h"
#include "runtime/recorder/call_kind.h"
#include "runtime/recorder/step_folder.h"

namespace plait::runtime {

// Thread-safe. Nothing throws but json(): what there is no memory for is counted as lost. Its memory is bounded: what
// goes beyond the bounds below is counted, too.
class Recorder {
 public:
  explicit Recorder(int world_rank) : world_rank_(world_rank) {}

  // The communicator's number: the same for the same ranks in the same order. The last number stands for all beyond the
  // bound.
  int communicator(const std::vector<int>& world_ranks) noexcept;

  void add_call(const CallKind& kind, std::uint64_t bytes, Span time) noexcept;
  // `request`: by which it is waited for. Where a key comes again the older call was never seen to end.
  void add_posted(const CallKind& kind, std::uint64_t bytes, Span time, std::uint64_t request) noexcept;
  // A persistent collective, which add_start() then starts, by its request. Where a key comes again the older one is
  // gone.
  void add_persistent(const CallKind& kind, std::uint64_t bytes, std::uint64_t request) noexcept;
  // Of keys that it does not know: nothing. Before the start: that may find it complete.
  void add_start(std::uint64_t request, std::uint64_t now_ns) noexcept;
  void rename(std::uint64_t request, std::uint64_t renamed) noexcept;        // the request has another key from now on
  void forget(std::uint64_t request) noexcept;                               // a persistent one is freed
  void note_complete(std::uint64_t request, std::uint64_t now_ns) noexcept;  // found so by whoever moves it on
  void add_wait(std::uint64_t request, Span time) noexcept;                  // of keys that it does not know: nothing
  void add_mark() noexcept;

  // The step that the program repeats, once it was seen so often; nothing: it is not known yet. Throws where memory is
  // short.
  std::optional<plan::step::Step> step_so_far(std::uint64_t times) const;

  // No more comes. `program`: its name. Throws where memory is short.
  std::string finish(const std::string& program);

  std::size_t bytes() const;  // of memory

  static constexpr std::size_t most_communicators = 1024, most_kinds = 4096, most_requests = 1u << 15;

 private:
  struct Posted {
    std::uint64_t call = 0, begin_ns = 0, complete_ns = 0;
  };
  struct PersistentCall {
    CallKind kind;
    std::uint64_t bytes = 0;
  };
  struct KindHash {
    std::size_t operator()(const CallKind& kind) const;
  };
  std::uint32_t index_of(const CallKind& kind);
  std::uint64_t add(const CallKind& kind, std::uint64_t bytes, Span time);
  void post(const CallKind& kind, std::uint64_t bytes, Span time, std::uint64_t request);
  template <class Work>
  void record(Work&& work) noexcept;

  mutable std::mutex guard_;
  int world_rank_;
  StepFolder folder_;
  std::map<std::vector<int>, int> communicators_;
  std::unordered_map<CallKind, std::uint32_t, KindHash> kinds_;
  std::vector<CallKind> kind_list_;
  std::unordered_map<std::uint64_t, Posted> posted_;
  std::unordered_map<std::uint64_t, PersistentCall> persistent_;
  std::uint64_t lost_ = 0, unwaited_ = 0;
};

namespace detail {
extern constinit std::atomic<Recorder*> recorder;
}

// nullptr: nothing is recorded, which is the usual case. Never destroyed once it was there.
inline Recorder* recorder() { return detail::recorder.load(std::memory_order_acquire); }

}  // namespace plait::runtime
