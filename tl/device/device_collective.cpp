#include "tl/device/device_collective.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/immortal.h"
#include "core/log.h"

namespace plait::tl {
namespace {

// Shares begin at multiples of so many bytes, where the buffers do.
constexpr std::uint64_t share_unit = 512;
constexpr std::size_t longest_number = 8;

// Of communicators that are gone. Never destroyed: the driver may be gone before this library is, and a program may
// have ended a context whose streams nobody may end again.
struct IdleWorkers {
  std::mutex guard;
  std::vector<std::unique_ptr<DeviceWorker>> all;
};
IdleWorkers& idle_workers() {
  static Immortal<IdleWorkers> made;
  return *made;
}

std::unique_ptr<DeviceWorker> take_idle(const DeviceDriver* driver, const void* context) {
  const std::scoped_lock lock(idle_workers().guard);
  auto& all = idle_workers().all;
  const auto same =
      std::ranges::find_if(all, [&](const auto& one) { return one->driver == driver && one->context == context; });
  if (same == all.end()) return nullptr;
  std::unique_ptr<DeviceWorker> found = std::move(*same);
  all.erase(same);
  return found;
}

void let_idle(std::unique_ptr<DeviceWorker> worker) noexcept {
  if (worker == nullptr) return;
  try {
    const std::scoped_lock lock(idle_workers().guard);
    idle_workers().all.push_back(std::move(worker));
  } catch (const std::exception&) {  // it ends
  }
}

bool in_pieces(ShmCollectiveKind kind) { return has_pieces(kind) || kind == ShmCollectiveKind::all_to_all; }

}  // namespace

DeviceCollective::~DeviceCollective() { let_idle(std::move(worker_)); }

void DeviceCollective::start(const DeviceCall& call) {
  call_ = call;
  outcome_ = Outcome::under_way;
  working_ = false;
  unmapped_ = {};
  maps_.end_call();
}

// Of the larger side of a rank.
std::uint64_t DeviceCollective::whole_bytes() const {
  return in_pieces(call_.kind) ? call_.bytes * members() : call_.bytes;
}

std::uint64_t DeviceCollective::input_bytes() const {
  const bool many = call_.kind == ShmCollectiveKind::reduce_scatter || call_.kind == ShmCollectiveKind::scatter ||
                    call_.kind == ShmCollectiveKind::all_to_all;
  return many ? call_.bytes * call_.members : call_.bytes;
}

std::uint64_t DeviceCollective::output_bytes() const {
  const bool many = call_.kind == ShmCollectiveKind::gather || call_.kind == ShmCollectiveKind::all_gather ||
                    call_.kind == ShmCollectiveKind::all_to_all;
  return many ? call_.bytes * call_.members : call_.bytes;
}

// ---- The first round: where the data are ----

Result<bool> DeviceCollective::speak(unsigned round, Word word) {
  if (round > 0) {
    word[0] = static_cast<std::byte>(unmapped_.ok() ? 1 : 0);
    return true;
  }
  if (call_.driver != nullptr && call_.program != nullptr) {
    const Result<bool> passed = call_.program->passed();
    if (!passed.ok() || !*passed) return passed;
  }
  const Announcement mine = own_announcement();
  std::memcpy(word.data(), &mine, sizeof mine);
  return true;
}

DeviceCollective::Announcement DeviceCollective::own_announcement() {
  Announcement mine{.process = process_number()};
  if (call_.driver == nullptr) return mine;
  const bool on_device = announce_sides(mine);
  mine.freed = exports_.look_for_freed(*call_.driver);  // and what the sides have pushed out
  if (on_device) {
    mine.state = State::on_device;
    if (numbered_device_ != memory_.device) device_number_ = call_.driver->device_number(memory_);
    numbered_device_ = memory_.device;
    mine.device = device_number_;
  }
  return mine;
}

// False where the others could not reach them, or this rank's device does not know the operator.
bool DeviceCollective::announce_sides(Announcement& mine) {
  memory_ = {};
  struct Side {
    const std::byte* address;
    std::uint64_t bytes;
    SharedPlace* place;
  };
  for (const auto& [address, bytes, place] :
       {Side{call_.input, input_bytes(), &mine.input}, {call_.output, output_bytes(), &mine.output}}) {
    if (address == nullptr) continue;
    const DeviceMemory memory = call_.driver->memory_at(address);
    if (memory_.allocation != 0 && memory.context != memory_.context) return false;
    memory_ = memory;
    const Result<SharedPlace> shared = exports_.place_of(*call_.driver, address, bytes);
    if (!shared.ok()) {
      debug("device memory: " + shared.status().message());
      return false;
    }
    *place = *shared;
  }
  if (memory_.allocation == 0) return false;
  return !plan::reduces(call_.kind) || call_.driver->reduces(memory_, call_.op, call_.element);
}

bool DeviceCollective::all_on_devices() const {
  return std::ranges::all_of(announced_, [](const Announcement& one) { return one.state == State::on_device; });
}

bool DeviceCollective::share_a_device() const {
  for (std::size_t member = 1; member < members(); ++member)
    for (std::size_t other = 0; other < member; ++other)
      if (announced_[member].device == announced_[other].device) return true;
  return false;
}

// Numbers are where a kernel can take them.
bool DeviceCollective::are_aligned() const {
  if (!plan::reduces(call_.kind)) return true;
  const std::uint64_t unit = std::min(call_.element_bytes, longest_number);
  return std::ranges::all_of(announced_, [unit](const Announcement& one) {
    return one.input.address % unit == 0 && one.output.address % unit == 0;
  });
}

Result<NodeTalk::Then> DeviceCollective::hear(unsigned round, Words words) {
  if (round > 0) {
    const bool all = std::ranges::all_of(words, [](const std::byte* word) { return *word != std::byte{0}; });
    if (all) return Then::work;
    if (!unmapped_.ok()) debug("device memory: " + unmapped_.message());
    maps_.leave();  // no later call would hear what of it is freed
    outcome_ = Outcome::refused;
    return Then::end;
  }
  announced_.resize(words.size());
  for (std::size_t member = 0; member < members(); ++member) {
    std::memcpy(&announced_[member], words[member], sizeof(Announcement));
    maps_.forget(announced_[member].process, announced_[member].freed);
  }
  const bool pays = whole_bytes() >= call_.shared_from || !share_a_device();
  if (!all_on_devices() || !are_aligned() || !pays || members() > most_device_parties) {
    outcome_ = Outcome::elsewhere;
    return Then::end;
  }
  unmapped_ = map_peers();
  return Then::speak;
}

// ---- What is to be reached ----

// Whether this rank reads what a member gives.
bool DeviceCollective::needs_inputs(std::size_t member) const {
  switch (call_.kind) {
    case ShmCollectiveKind::all_reduce:
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::reduce_scatter:
      return true;
    case ShmCollectiveKind::broadcast:
    case ShmCollectiveKind::scatter:
      return member == call_.root;
    default:
      return member == call_.self;
  }
}

// Whether this rank writes what a member gets.
bool DeviceCollective::needs_outputs(std::size_t member) const {
  switch (call_.kind) {
    case ShmCollectiveKind::all_reduce:
    case ShmCollectiveKind::all_gather:
    case ShmCollectiveKind::all_to_all:
      return true;
    case ShmCollectiveKind::reduce:
    case ShmCollectiveKind::gather:
      return member == call_.root;
    default:
      return member == call_.self;
  }
}

Status DeviceCollective::map_side(std::size_t member, SharedPlace Announcement::*side, std::byte* own,
                                  std::vector<std::byte*>& found) {
  if (member == call_.self) {
    found[member] = own;
    return {};
  }
  const Announcement& theirs = announced_[member];
  const Result<std::byte*> mapped = maps_.find(theirs.process, theirs.*side, *call_.driver, memory_);
  if (mapped.ok()) found[member] = *mapped;
  return mapped.status();
}

Status DeviceCollective::map_peers() {
  inputs_.assign(members(), nullptr);
  outputs_.assign(members(), nullptr);
  Status status;
  for (std::size_t member = 0; member < members() && status.ok(); ++member) {
    if (needs_inputs(member)) status = map_side(member, &Announcement::input, call_.input, inputs_);
    if (status.ok() && needs_outputs(member)) status = map_side(member, &Announcement::output, call_.output, outputs_);
  }
  return status.ok() ? find_worker() : status;
}

Status DeviceCollective::find_worker() {
  if (worker_ != nullptr && worker_->driver == call_.driver && worker_->context == memory_.context) return {};
  let_idle(std::move(worker_));
  worker_ = take_idle(call_.driver, memory_.context);
  if (worker_ != nullptr) return {};
  Result<std::unique_ptr<DeviceStream>> stream = call_.driver->make_stream(memory_);
  if (!stream.ok()) return stream.status();
  Result<std::unique_ptr<DeviceEvent>> event = call_.driver->make_event(memory_);
  if (!event.ok()) return event.status();
  worker_ = std::make_unique<DeviceWorker>(
      DeviceWorker{call_.driver, memory_.context, std::move(*stream), std::move(*event)});
  return {};
}

// ---- Work ----

// All members, beginning with the next: no member's memory is the first that all touch.
template <class Visit>
void DeviceCollective::for_all(Visit&& visit) const {
  for (std::size_t distance = 1; distance <= members(); ++distance) visit((call_.self + distance) % members());
}

Status DeviceCollective::begin_work() {
  working_ = true;
  Status status = launch();
  if (status.ok()) status = worker_->stream->record(*worker_->end);
  return status;
}

Status DeviceCollective::launch() {
  if (plan::reduces(call_.kind)) return reduce();
  moves_.clear();
  add_moves();
  return moves_.empty() ? Status() : worker_->stream->move(moves_);
}

// The sources in the order of the members, as on the processor: the same bits on all ranks.
Status DeviceCollective::reduce() {
  const std::uint64_t elements = call_.bytes / call_.element_bytes;
  std::uint64_t first = 0, end = elements;
  if (call_.kind == ShmCollectiveKind::reduce_scatter) {
    first = call_.self * elements;
    end = first + elements;
  } else {
    const std::uint64_t unit = std::max<std::uint64_t>(share_unit / call_.element_bytes, 1);
    const std::uint64_t share = (elements + members() * unit - 1) / (members() * unit) * unit;
    first = std::min(elements, call_.self * share);
    end = std::min(elements, first + share);
  }
  if (first == end) return {};
  sources_.clear();
  results_.clear();
  for (const std::byte* input : inputs_) sources_.push_back(input + first * call_.element_bytes);
  if (call_.kind == ShmCollectiveKind::reduce_scatter) {
    results_.push_back(call_.output);
  } else {
    for_all([&](std::size_t member) {
      if (outputs_[member] != nullptr) results_.push_back(outputs_[member] + first * call_.element_bytes);
    });
  }
  return worker_->stream->reduce(
      {.op = call_.op, .element = call_.element, .elements = end - first, .sources = sources_, .results = results_});
}

void DeviceCollective::add_moves() {
  const std::uint64_t bytes = call_.bytes, own = call_.self * bytes;
  const auto move = [this](std::byte* to, const std::byte* from, std::uint64_t length) {
    if (to != from) moves_.push_back({to, from, length});
  };
  const bool is_root = call_.self == call_.root;
  switch (call_.kind) {
    case ShmCollectiveKind::broadcast:
      if (!is_root) move(call_.output, inputs_[call_.root], bytes);
      return;
    case ShmCollectiveKind::scatter:
      if (call_.output != nullptr) move(call_.output, inputs_[call_.root] + own, bytes);
      return;
    case ShmCollectiveKind::gather:
      return move(outputs_[call_.root] + own, call_.input, bytes);
    case ShmCollectiveKind::all_gather:
      return for_all([&](std::size_t member) { move(outputs_[member] + own, call_.input, bytes); });
    default:
      return for_all([&](std::size_t member) { move(outputs_[member] + own, call_.input + member * bytes, bytes); });
  }
}

Result<bool> DeviceCollective::work() {
  const Result<bool> passed = worker_->end->passed();
  if (passed.ok() && *passed) {
    working_ = false;
    maps_.end_call();
    outcome_ = Outcome::done;
  }
  return passed;
}

// A kernel always ends. No event is asked: what has failed may be that one could not be recorded behind it.
void DeviceCollective::abandon() noexcept {
  if (std::exchange(working_, false)) worker_->stream->finish();
  maps_.end_call();
}

}  // namespace plait::tl
