#include "tests/runtime/in_process_oob.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>

namespace plait::runtime {
namespace {

constexpr int nobody = std::numeric_limits<int>::max();

template <class T>
T combined(Op op, T left, T right) {
  switch (op) {
    case Op::sum:
      return static_cast<T>(left + right);
    case Op::min:
      return std::min(left, right);
    case Op::max:
      return std::max(left, right);
    default:
      if constexpr (std::is_integral_v<T>) return static_cast<T>(left & right);
      return left;
  }
}

template <class T>
void combine_into(Op op, std::vector<std::byte>& all, const std::vector<std::byte>& one) {
  auto* to = reinterpret_cast<T*>(all.data());
  const auto* from = reinterpret_cast<const T*>(one.data());
  for (std::size_t i = 0; i < all.size() / sizeof(T); ++i) to[i] = combined(op, to[i], from[i]);
}

void combine_into(Element element, Op op, std::vector<std::byte>& all, const std::vector<std::byte>& one) {
  switch (element) {
    case Element::u8:
      return combine_into<std::uint8_t>(op, all, one);
    case Element::i32:
      return combine_into<std::int32_t>(op, all, one);
    case Element::i64:
      return combine_into<std::int64_t>(op, all, one);
    case Element::u64:
      return combine_into<std::uint64_t>(op, all, one);
    case Element::f64:
      return combine_into<double>(op, all, one);
    default:
      std::abort();  // nothing asks for it
  }
}

}  // namespace

struct InProcessJob::Step {
  std::vector<Bytes> brought;
  int arrived = 0;
  int missing = nobody;
  bool over = false;
  std::shared_ptr<const Bytes> result;
  // The same for sleepers. A condition's would take the guard one after the other, thousands in a set-up of thousands.
  std::atomic<std::uint32_t> done{0};

  void wake() {
    done.store(1, std::memory_order_release);
    syscall(SYS_futex, &done, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
  }
  void sleep() {
    while (done.load(std::memory_order_acquire) == 0)
      syscall(SYS_futex, &done, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
};

class InProcessOob final : public Oob {
 public:
  InProcessOob(InProcessJob& job, int rank) : job_(job), rank_(rank) {
    if (job_.network_ != nullptr) messages_.emplace(*job_.network_, rank);
  }
  InProcessOob(std::shared_ptr<InProcessJob> part, int rank) : part_(std::move(part)), job_(*part_), rank_(rank) {}
  HostMessages* messages() override { return messages_ ? &*messages_ : nullptr; }
  int rank() const override { return rank_; }
  int ranks() const override { return job_.ranks(); }

  Status meet(std::string_view what) override {
    return step(nullptr, 0, nullptr, what, [](const auto&) { return InProcessJob::Bytes(); });
  }
  Status gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) override {
    return step(mine, bytes, all, what, gathered);
  }
  Status tell_all(void* data, std::size_t bytes, std::string_view what) override {
    return step(data, bytes, data, what,
                [](const std::vector<InProcessJob::Bytes>& brought) { return brought.front(); });
  }
  Status reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                    std::string_view what) override {
    return step(mine, count * extent(element), all, what, [=](const std::vector<InProcessJob::Bytes>& brought) {
      InProcessJob::Bytes result = brought.front();
      for (std::size_t i = 1; i < brought.size(); ++i) combine_into(element, op, result, brought[i]);
      return result;
    });
  }
  Status gather_all_unless(const std::function<Status()>& failed_meanwhile, const void* mine, std::size_t bytes,
                           void* all, std::string_view what) override {
    const auto* begin = static_cast<const std::byte*>(mine);
    Status failure;
    const auto outcome =
        job_.arrive_unless(failed_meanwhile, rank_, InProcessJob::Bytes(begin, begin + bytes), gathered, failure);
    if (!failure.ok()) return failure;
    if (outcome.missing != nobody) return failed(Code::peer_failed, what, outcome.missing);
    std::ranges::copy(*outcome.bytes, static_cast<std::byte*>(all));
    return {};
  }
  void gather_texts(const std::string& mine, const std::function<void(int, std::string)>& take) override {
    std::unique_lock lock(job_.guard_);
    job_.texts_[static_cast<std::size_t>(rank_)] = {true, mine};
    job_.changed_.notify_all();
    if (rank_ != 0) return;
    for (int from = 0; from < ranks(); ++from) {
      auto& [brought, text] = job_.texts_[static_cast<std::size_t>(from)];
      job_.changed_.wait(lock, [&brought = brought] { return brought; });
      take(from, std::move(text));
      brought = false;
    }
  }
  std::unique_ptr<FailureNotice> make_notice(std::uint64_t number, std::vector<int> near) override;
  Status part(std::optional<int> colour, std::unique_ptr<Oob>& made, std::string_view what) override;
  void abandon() noexcept override {}
  void withdraw() noexcept override {
    job_.arrive(rank_, false, {}, [](const auto&) { return InProcessJob::Bytes(); });
  }
  Status go_on_together(const Status& mine) noexcept override {
    const auto outcome = job_.go_on(rank_, mine.ok());
    if (!mine.ok()) return {mine.code(), "out of memory"};
    return outcome.missing == nobody ? Status() : failed(Code::unavailable, "go on together", outcome.missing);
  }
  void leave_word(int rank) noexcept override { ++job_.words_[static_cast<std::size_t>(rank)]; }
  bool word_left() override { return job_.words_[static_cast<std::size_t>(rank_)].load() != 0; }

 private:
  static InProcessJob::Bytes gathered(const std::vector<InProcessJob::Bytes>& brought) {
    InProcessJob::Bytes all;
    for (const auto& one : brought) all.insert(all.end(), one.begin(), one.end());
    return all;
  }
  static Status failed(Code code, std::string_view what, int missing) {
    return {code,
            "the ranks could not " + std::string(what) + ": rank " + std::to_string(missing) + " is out of memory"};
  }
  Status step(const void* mine, std::size_t bytes, void* all, std::string_view what,
              const InProcessJob::Combine& combine) {
    const auto* begin = static_cast<const std::byte*>(mine);
    const auto outcome = job_.arrive(rank_, true, InProcessJob::Bytes(begin, begin + bytes), combine);
    if (outcome.missing != nobody) return failed(Code::peer_failed, what, outcome.missing);
    if (all != nullptr) std::ranges::copy(*outcome.bytes, static_cast<std::byte*>(all));
    return {};
  }

  std::shared_ptr<InProcessJob> part_;  // nullptr: it is the whole job's
  InProcessJob& job_;
  const int rank_;
  std::optional<MemoryMessages> messages_;
};

// A rank of one team hears what was told in that team.
class InProcessNotice final : public FailureNotice {
 public:
  InProcessNotice(InProcessJob& job, int rank, std::uint64_t number, std::vector<int> near)
      : job_(job), rank_(rank), number_(number), near_(std::move(near)) {}
  void look() override {
    const std::scoped_lock lock(job_.guard_);
    for (const auto& notice : job_.notices_[static_cast<std::size_t>(rank_)])
      if (notice.number == number_) hear(notice.from, notice.code, notice.reason.c_str());
  }
  void tell(const Status& cause) noexcept override {
    if (told_ || !improves(cause.code())) return;
    told_ = true;
    const std::scoped_lock lock(job_.guard_);
    const Code code = cause.code() == Code::peer_left ? Code::peer_left : Code::peer_failed;
    for (int other = 0; other < job_.ranks(); ++other)
      if (std::ranges::find(near_, other) == near_.end())
        job_.notices_[static_cast<std::size_t>(other)].push_back({number_, rank_, code, cause.message()});
  }

 private:
  InProcessJob& job_;
  const int rank_;
  const std::uint64_t number_;
  const std::vector<int> near_;
};

std::unique_ptr<FailureNotice> InProcessOob::make_notice(std::uint64_t number, std::vector<int> near) {
  return std::make_unique<InProcessNotice>(job_, rank_, number, std::move(near));
}

// The ranks of a part meet in a job of their own.
Status InProcessOob::part(std::optional<int> colour, std::unique_ptr<Oob>& made, std::string_view what) {
  if (job_.no_parts_) return Oob::part(colour, made, what);
  const int mine = colour.value_or(nobody);
  const auto* begin = reinterpret_cast<const std::byte*>(&mine);
  const auto outcome = job_.arrive(rank_, true, InProcessJob::Bytes(begin, begin + sizeof mine), gathered);
  if (outcome.missing != nobody) return failed(Code::peer_failed, what, outcome.missing);
  if (!colour) return {};
  const auto* colours = reinterpret_cast<const int*>(outcome.bytes->data());
  const int before = static_cast<int>(std::count(colours, colours + rank_, mine));
  const int members = before + static_cast<int>(std::count(colours + rank_, colours + ranks(), mine));
  made = std::make_unique<InProcessOob>(job_.part_of(outcome.bytes, mine, members), before);
  return {};
}

InProcessJob::InProcessJob(int ranks)
    : ranks_(ranks),
      step_(std::make_shared<Step>()),
      words_(static_cast<std::size_t>(ranks)),
      notices_(static_cast<std::size_t>(ranks)),
      texts_(static_cast<std::size_t>(ranks)) {
  step_->brought.resize(static_cast<std::size_t>(ranks));
}

// The first of its ranks makes it, and who takes it last has made all of it.
std::shared_ptr<InProcessJob> InProcessJob::part_of(const std::shared_ptr<const Bytes>& step, int colour, int members) {
  const std::scoped_lock lock(guard_);
  auto& [part, taken] = parts_[{step.get(), colour}];
  if (part == nullptr) part = std::make_shared<InProcessJob>(members);
  std::shared_ptr<InProcessJob> found = part;
  if (++taken == members) parts_.erase({step.get(), colour});
  return found;
}

void InProcessJob::bring_messages(std::uint64_t seed, int most_delay) {
  network_ = std::make_unique<MemoryNetwork>(ranks_, seed, most_delay);
}

std::unique_ptr<Oob> InProcessJob::oob(int rank) { return std::make_unique<InProcessOob>(*this, rank); }

int InProcessJob::steps() {
  const std::scoped_lock lock(guard_);
  return steps_;
}

InProcessJob::Outcome InProcessJob::arrive(int rank, bool goes_on, Bytes mine, const Combine& combine) {
  std::unique_lock lock(guard_);
  const std::shared_ptr<Step> step = join_step(rank, goes_on, std::move(mine), combine);
  lock.unlock();
  if (!goes_on) return {nobody, nullptr};  // nobody asks
  step->sleep();
  return {step->missing, step->result};
}

// Who cannot go on by this way may take further steps.
InProcessJob::Outcome InProcessJob::go_on(int rank, bool goes_on) {
  std::unique_lock lock(guard_);
  const std::shared_ptr<Step> step = join_step(rank, goes_on, {}, [](const auto&) { return Bytes(); });
  lock.unlock();
  step->sleep();
  return {step->missing, step->result};
}

InProcessJob::Outcome InProcessJob::arrive_unless(const std::function<Status()>& failed, int rank, Bytes mine,
                                                  const Combine& combine, Status& failure) {
  std::unique_lock lock(guard_);
  const std::shared_ptr<Step> step = join_step(rank, true, std::move(mine), combine);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(1), [&] { return step->over; })) {
    lock.unlock();
    failure = failed();
    lock.lock();
    if (!failure.ok()) break;
  }
  return {step->missing, step->result};
}

std::shared_ptr<InProcessJob::Step> InProcessJob::join_step(int rank, bool goes_on, Bytes mine,
                                                            const Combine& combine) {
  std::shared_ptr<Step> step = step_;
  step->brought[static_cast<std::size_t>(rank)] = std::move(mine);
  if (!goes_on) step->missing = std::min(step->missing, rank);
  if (++step->arrived == ranks_) {
    if (step->missing == nobody) step->result = std::make_shared<const Bytes>(combine(step->brought));
    step->over = true;
    ++steps_;
    step_ = std::make_shared<Step>();
    step_->brought.resize(static_cast<std::size_t>(ranks_));
    changed_.notify_all();
    step->wake();
  }
  return step;
}

std::string InProcessJob::run(const std::function<std::string(Oob& oob)>& rank) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks_));
  std::vector<std::thread> threads;
  threads.reserve(said.size());
  for (int i = 0; i < ranks_; ++i)
    threads.emplace_back([&, i] {
      const std::unique_ptr<Oob> own = oob(i);
      said[static_cast<std::size_t>(i)] = rank(*own);
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < said.size(); ++i)
    if (!said[i].empty()) return "rank " + std::to_string(i) + ": " + said[i];
  return {};
}

}  // namespace plait::runtime
