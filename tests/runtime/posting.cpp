#include "tests/runtime/posting.h"

#include <sched.h>

#include <cstring>
#include <utility>

#include "core/reduction.h"
#include "runtime/execution/caller.h"
#include "runtime/team/set_up.h"

namespace plait::runtime {
namespace {

constexpr std::size_t number_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t untouched = 0xABABABABABABABAB;

// The one failure of a call's data that tests make.
constexpr int failed = 17, truncated = 18;

int pack_numbers(const std::byte* from, std::size_t count, const Layout& layout, std::byte* packed) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(packed + i * layout.size, from + static_cast<std::ptrdiff_t>(i) * layout.extent, layout.size);
  return 0;
}

int unpack_numbers(std::byte* to, std::size_t count, const Layout& layout, const std::byte* packed) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + static_cast<std::ptrdiff_t>(i) * layout.extent, packed + i * layout.size, layout.size);
  return 0;
}

constexpr Caller test_caller = {
    .pack = pack_numbers,
    .unpack = unpack_numbers,
    .runs = [](const Layout& layout) -> std::vector<ByteRun> { return {{.begin = 0, .bytes = layout.size}}; },
    .code_of = [](const Status&) { return failed; },
    .status_of = [](int code) { return Status(Code::internal, "code " + std::to_string(code)); },
    .truncated = truncated};

void turn(Progress& progress) { progress.progress(); }
void turn_of_wait(Progress& progress) {
  if (progress.progress() == 0) sched_yield();
}

std::size_t stride_of(const Layout& layout) { return static_cast<std::size_t>(layout.extent) / number_bytes; }

}  // namespace

const Layout& dense_layout() {
  static constexpr Layout layout = {.size = number_bytes,
                                    .extent = number_bytes,
                                    .lower_bound = 0,
                                    .true_lower_bound = 0,
                                    .true_extent = number_bytes,
                                    .contiguous = true,
                                    .gapless = true};
  return layout;
}

const Layout& sparse_layout() {
  static constexpr Layout layout = {.size = number_bytes,
                                    .extent = 2 * number_bytes,
                                    .lower_bound = 0,
                                    .true_lower_bound = 0,
                                    .true_extent = number_bytes,
                                    .contiguous = false,
                                    .gapless = true};
  return layout;
}

RankCommunicator::RankCommunicator(Progress& mover, InProcessJob& job, int own, const Shape& shape)
    : Communicator(mover), job_(job), shape_(shape) {
  rank = own;
  ranks = shape.ranks;
}

Result<std::unique_ptr<Team>> RankCommunicator::connect(TeamExtent extent, std::unique_ptr<Team> before) noexcept {
  std::unique_ptr<Oob> oob = before == nullptr ? job_.oob(rank) : nullptr;
  return set_up(request_of(rank, shape_, extent), std::move(oob), std::move(before));
}

void RankCommunicator::decline_set_up() noexcept { job_.oob(rank)->withdraw(); }

PostingRank::PostingRank(InProcessJob& job, int rank, const Shape& shape, std::uint64_t seed)
    : progress({.turn_from_host = turn, .turn_of_wait = turn_of_wait, .waits_come_here = [] { return false; }}),
      communicator(progress, job, rank, shape),
      random(seed + static_cast<std::uint64_t>(rank)) {
  static const bool installed = (install_caller(test_caller), true);  // ranks are threads of one process
  static_cast<void>(installed);
}

std::string PostingRank::connect(Communicator& one) {
  Result<std::unique_ptr<Team>> made = one.connect(TeamExtent::all_calls, nullptr);
  if (!made.ok()) return made.status().message();
  one.team = std::move(*made);
  one.road = Road::accelerated;
  return {};
}

std::unique_ptr<PostedOperation> PostingRank::prepare_sum(Communicator& one, std::size_t count, std::uint64_t salt,
                                                          const Layout& layout) {
  static const Reducer sum = make_reducer(Op::sum, Element::u64);
  auto operation = std::make_unique<PostedOperation>();
  operation->communicator = &one;
  Request& request = operation->request;
  request.lists = &operation->kept;
  request.call = {.collective = Collective::allreduce,
                  .root = 0,
                  .count = count,
                  .element_bytes = number_bytes,
                  .commutative = true};
  request.reducer = &sum;
  for (Region* side : {&request.input, &request.output}) {
    data_.push_back(std::make_unique<std::vector<std::uint64_t>>(count * stride_of(layout), untouched));
    *side = {.address = reinterpret_cast<std::byte*>(data_.back()->data()), .count = count, .type = &layout};
    side->bytes = count * number_bytes;
    side->direct = layout.contiguous;
  }
  auto* mine = reinterpret_cast<std::uint64_t*>(request.input.address);
  for (std::size_t i = 0; i < count; ++i) mine[i * stride_of(layout)] = salt + i + static_cast<std::uint64_t>(one.rank);
  operation->prepared = one.team->schedules.hold({.call = request.call, .candidate = planners_candidate});
  return operation;
}

void PostingRank::compute() {
  for (std::uint64_t turns = random() % 40; turns > 0; --turns) {
    progress.progress();
    if (turns % 8 == 0) sched_yield();
  }
}

int PostingRank::wait_for(Operation& operation) {
  while (!operation.complete.load(std::memory_order_acquire)) turn_of_wait(progress);
  return operation.error;
}

std::string wrong_sum(const PostedOperation& operation, int ranks, std::uint64_t salt) {
  const Region& output = operation.request.output;
  const std::size_t stride = stride_of(*output.type);
  const auto* found = reinterpret_cast<const std::uint64_t*>(output.address);
  const auto n = static_cast<std::uint64_t>(ranks);
  for (std::size_t i = 0; i < output.count; ++i) {
    if (found[i * stride] != n * (salt + i) + n * (n - 1) / 2)
      return "element " + std::to_string(i) + " of " + std::to_string(output.count) + " is " +
             std::to_string(found[i * stride]);
    if (stride > 1 && found[i * stride + 1] != untouched) return "wrote between elements";
  }
  return {};
}

}  // namespace plait::runtime
