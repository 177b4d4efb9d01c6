// Collectives between the devices of a node's ranks, in processes with the tests' own driver.
#include "tl/device/device_collective.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "tests/tl/device_rank.h"

namespace plait::tl {
namespace {

using Outcome = DeviceCollective::Outcome;

// What a process tells another one of its memory.
struct ToldMemory {
  SharedPlace place;
  std::uint64_t process = 0;
};

// Of two ranks, each hears what the other one says.
class TellEachOther final : public NodeTalk {
 public:
  TellEachOther(std::size_t other, const ToldMemory& mine) : theirs(mine), other_(other) {}
  Result<bool> speak(unsigned, Word word) override {
    std::memcpy(word.data(), &theirs, sizeof theirs);
    return true;
  }
  Result<Then> hear(unsigned, Words words) override {
    std::memcpy(&theirs, words[other_], sizeof theirs);
    return Then::end;
  }
  Status begin_work() override { return {}; }
  Result<bool> work() override { return true; }
  void abandon() noexcept override {}

  ToldMemory theirs;

 private:
  std::size_t other_;
};

class DeviceCollectives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DeviceCollectives, ::testing::Values(2, 3, 4));

// Of no elements for some, of odd counts, and where no vector is aligned.
TEST_P(DeviceCollectives, SumOfAll) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              for (const std::size_t count : {1u, 127u, 129u, 4099u, 70'000u})
                for (const std::size_t shift : {0u, 1u})
                  for (const bool in_place : {false, true}) {
                    const std::size_t own = rank.rank() == 0 ? shift : 0;
                    std::byte* input = rank.allocate((count + 1) * sizeof(int)) + own * sizeof(int);
                    std::byte* output = in_place ? input : rank.allocate(count * sizeof(int));
                    rank.fill(input, count);
                    PLAIT_WANT(rank.run(rank.sum(input, output, count)).ok());
                    PLAIT_WANT(rank.collective.outcome() == Outcome::done);
                    PLAIT_WANT(rank.is_sum(output, count));
                    if (!in_place) PLAIT_WANT(rank.data(input)[0] == DeviceRank::value(rank.rank(), 0));
                  }
              return "";
            }));
}

TEST_P(DeviceCollectives, ReductionsToOneAndToShares) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 3001;
              const auto all = count * static_cast<std::size_t>(rank.ranks());
              std::byte *input = rank.numbered(all), *output = rank.numbered(count);
              DeviceCall call = rank.sum(input, rank.rank() == 1 ? output : nullptr, count);
              call.kind = ShmCollectiveKind::reduce;
              call.root = 1;
              PLAIT_WANT(rank.run(call).ok());
              PLAIT_WANT(rank.rank() != 1 || rank.is_sum(output, count));
              call = rank.sum(input, output, count);
              call.kind = ShmCollectiveKind::reduce_scatter;
              PLAIT_WANT(rank.run(call).ok());
              const auto first = static_cast<std::size_t>(rank.rank()) * count;
              for (std::size_t i = 0; i < count; ++i) {
                int expected = 0;
                for (int of = 0; of < rank.ranks(); ++of) expected += DeviceRank::value(of, first + i);
                PLAIT_WANT(rank.data(output)[i] == expected);
              }
              return "";
            }));
}

TEST_P(DeviceCollectives, Moves) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 777;
              const auto ranks = static_cast<std::size_t>(rank.ranks()), self = static_cast<std::size_t>(rank.rank());
              const auto value = [](std::size_t of, std::size_t i) {
                return DeviceRank::value(static_cast<int>(of), i);
              };
              DeviceCall call{.root = ranks - 1, .bytes = count * sizeof(int)};
              const bool root = self == call.root;
              std::byte *one = rank.numbered(count), *many = rank.numbered(count * ranks),
                        *got = rank.numbered(count * ranks);

              call.kind = ShmCollectiveKind::broadcast;
              call.input = root ? one : nullptr;
              call.output = root ? nullptr : one;
              PLAIT_WANT(rank.run(call).ok());
              PLAIT_WANT(rank.data(one)[count - 1] == value(call.root, count - 1));
              rank.fill(one, count);

              call.kind = ShmCollectiveKind::scatter;
              call.input = root ? many : nullptr;
              call.output = one;
              PLAIT_WANT(rank.run(call).ok());
              PLAIT_WANT(rank.data(one)[5] == value(call.root, self * count + 5));
              rank.fill(one, count);

              for (const ShmCollectiveKind kind : {ShmCollectiveKind::gather, ShmCollectiveKind::all_gather}) {
                const bool gets = root || kind == ShmCollectiveKind::all_gather;
                call.kind = kind;
                call.input = one;
                call.output = gets ? got : nullptr;
                PLAIT_WANT(rank.run(call).ok());
                for (std::size_t of = 0; of < ranks && gets; ++of)
                  for (std::size_t i = 0; i < count; ++i) PLAIT_WANT(rank.data(got)[of * count + i] == value(of, i));
                rank.fill(got, count * ranks);
              }

              call.kind = ShmCollectiveKind::all_to_all;
              call.input = many;
              call.output = got;
              PLAIT_WANT(rank.run(call).ok());
              for (std::size_t of = 0; of < ranks; ++of)
                for (std::size_t i = 0; i < count; ++i)
                  PLAIT_WANT(rank.data(got)[of * count + i] == value(of, self * count + i));
              return "";
            }));
}

// What a driver does not hand on, or does not let in, goes another way: all ranks know, and nothing was written.
TEST_P(DeviceCollectives, KnowWhereDataAreElsewhere) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 1000;
              std::byte *input = rank.numbered(count), *output = rank.numbered(count);
              const auto is_untouched = [&] { return rank.data(output)[7] == DeviceRank::value(rank.rank(), 7); };
              DeviceCall call = rank.sum(input, output, count);
              if (rank.rank() == 1) call = {.kind = call.kind, .bytes = call.bytes};
              PLAIT_WANT(rank.run(call).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::elsewhere && is_untouched());

              if (rank.rank() == 1) rank.fail("cuIpcGetMemHandle", 0, not_supported);
              PLAIT_WANT(rank.run(rank.sum(input, output, count)).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::elsewhere && is_untouched());
              if (rank.rank() == 1) rank.fail("cuIpcGetMemHandle", -1, 0);

              // Of a pool: no handle of it is asked of anybody else, and nothing is given up.
              std::byte* pooled = rank.allocate_in_pool(count * sizeof(int));
              PLAIT_WANT(pooled != nullptr);
              rank.fill(pooled, count);
              PLAIT_WANT(rank.run(rank.sum(input, rank.rank() == 1 ? pooled : output, count)).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::elsewhere && is_untouched());
              PLAIT_WANT(rank.data(pooled)[7] == DeviceRank::value(rank.rank(), 7));
              rank.release(pooled);

              DeviceCall shared = rank.sum(input, output, count);
              shared.shared_from = count * sizeof(int) + 1;
              PLAIT_WANT(rank.run(shared).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::elsewhere && is_untouched());

              if (rank.rank() == 1) rank.fail("cuIpcOpenMemHandle_v2", 0, not_supported);
              PLAIT_WANT(rank.run(rank.sum(input, output, count)).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::refused && is_untouched());
              PLAIT_WANT(PeerMaps::mapped() == 0);  // no later call would give it up
              if (rank.rank() == 1) rank.fail("cuIpcOpenMemHandle_v2", -1, 0);

              PLAIT_WANT(rank.run(rank.sum(input, output, count)).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::done && rank.is_sum(output, count));
              return "";
            }));
}

// The owner frees what is mapped, and its address comes to mean other memory; others appear all the time.
TEST_P(DeviceCollectives, MapAnewWhatWasFreed) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 5000;
              for (int round = 0; round < 20; ++round) {
                std::byte *input = rank.numbered(count), *output = rank.allocate(count * sizeof(int));
                PLAIT_WANT(rank.run(rank.sum(input, output, count)).ok());
                PLAIT_WANT(rank.collective.outcome() == Outcome::done && rank.is_sum(output, count));
                // Two of each peer, and those that it has freed since the call before.
                PLAIT_WANT(PeerMaps::mapped() <= 4 * static_cast<std::size_t>(rank.ranks() - 1));
                rank.release(input);
                rank.release(output);
              }
              return "";
            }));
}

// Two communicators have mapped the same memory, once. It is freed and its address used again: neither sees the old
// memory by what the other one still has of it, whichever comes first.
TEST_P(DeviceCollectives, ShareWhatTheyHaveMappedOfOthers) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 5000;
              const auto others = static_cast<std::size_t>(rank.ranks() - 1);
              DeviceCollective first, second;
              int same_address = 0;
              std::byte* before = nullptr;
              for (int round = 0; round < 8; ++round) {
                std::byte* both = rank.allocate(count * sizeof(int));
                same_address += both == before ? 1 : 0;
                before = both;
                for (DeviceCollective* by : {round % 2 != 0 ? &first : &second, round % 2 != 0 ? &second : &first}) {
                  rank.fill(both, count);
                  PLAIT_WANT(rank.run_by(*by, rank.sum(both, both, count)).ok());
                  PLAIT_WANT(by->outcome() == Outcome::done && rank.is_sum(both, count));
                }
                PLAIT_WANT(PeerMaps::mapped() == others);
                PLAIT_WANT(rank.call<decltype(fake_cuda_mapped)>("fake_cuda_mapped")() == rank.ranks() - 1);
                rank.release(both);
              }
              PLAIT_WANT(same_address == 7);  // or this shows nothing
              std::byte* last = rank.numbered(count);
              {
                DeviceCollective third;
                PLAIT_WANT(rank.run_by(third, rank.sum(last, last, count)).ok());
                rank.fill(last, count);
                PLAIT_WANT(rank.run_by(first, rank.sum(last, last, count)).ok());
              }
              PLAIT_WANT(PeerMaps::mapped() == others);  // one of its users is left
              return "";
            }));
}

// What its owner frees while a call is at work on it stays until that is over, and nothing takes its place before.
TEST(PeerMaps, KeepWhatACallIsAtWorkOn) {
  EXPECT_EQ(0, run_ranks(2, [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 100;
              std::byte* both = rank.numbered(count);
              const DeviceDriver& driver = *device_of(both);
              DeviceExports exports;
              const Result<SharedPlace> own = exports.place_of(driver, both, count * sizeof(int));
              PLAIT_WANT(own.ok());
              TellEachOther telling(static_cast<std::size_t>(1 - rank.rank()), {*own, process_number()});
              PLAIT_WANT(rank.talk(telling).ok());
              const SharedPlace place = telling.theirs.place;
              const std::uint64_t process = telling.theirs.process;
              PLAIT_WANT(process != process_number());
              PeerMaps working, other;
              const DeviceMemory near = driver.memory_at(both);
              const Result<std::byte*> found = working.find(process, place, driver, near);
              PLAIT_WANT(found.ok() && rank.data(*found)[3] == DeviceRank::value(1 - rank.rank(), 3));
              // As after it was freed: another allocation in its place.
              SharedPlace later = place;
              ++later.allocation;
              other.forget(process, {place.allocation});
              PLAIT_WANT(PeerMaps::mapped() == 1 && rank.data(*found) != nullptr);
              PLAIT_WANT(!other.find(process, later, driver, near).ok());
              working.end_call();
              PLAIT_WANT(PeerMaps::mapped() == 0 && rank.data(*found) == nullptr);
              PLAIT_WANT(other.find(process, later, driver, near).ok() && PeerMaps::mapped() == 1);
              other.leave();
              PLAIT_WANT(PeerMaps::mapped() == 0);
              return rank.run(rank.sum(both, both, count)).ok() ? "" : "the last call";  // both stay until then
            }));
}

TEST(DeviceCollective, MapsNoMoreThanItMay) {
  EXPECT_EQ(0, run_ranks(2, [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 100;
              for (std::size_t i = 0; i < PeerMaps::most_mapped + 10; ++i) {
                std::byte* both = rank.numbered(count);  // never freed
                PLAIT_WANT(rank.run(rank.sum(both, both, count)).ok());
                PLAIT_WANT(rank.is_sum(both, count));
                PLAIT_WANT(PeerMaps::mapped() <= PeerMaps::most_mapped);
              }
              return "";
            }));
}

// What the program has given its stream before the call is done before any rank reads.
TEST(DeviceCollective, ComesAfterTheProgram) {
  EXPECT_EQ(0, run_ranks(2, [](DeviceRank& rank) -> std::string {
              std::size_t count = 1000;
              std::byte* both = rank.numbered(count);
              const DeviceDriver* driver = device_of(both);
              auto event = driver->make_event(driver->memory_at(both));
              PLAIT_WANT(event.ok());
              CUfunction add = nullptr;
              rank.call<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&add, nullptr, "fake_add");
              auto address = reinterpret_cast<CUdeviceptr>(both);
              auto length = static_cast<unsigned>(count);
              int term = 5;
              void* parameters[] = {&address, &length, &term};
              rank.call<decltype(cuLaunchKernel)>("cuLaunchKernel")(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                                                                    nullptr);
              PLAIT_WANT(driver->record_program(**event).ok());
              DeviceCall call = rank.sum(both, both, count);
              call.program = event->get();
              PLAIT_WANT(rank.run(call).ok());
              PLAIT_WANT(rank.data(both)[10] == DeviceRank::value(0, 10) + DeviceRank::value(1, 10) + 2 * term);
              return "";
            }));
}

// A driver that fails in the middle: its rank says so, the others that it has failed.
TEST(DeviceCollective, EndsWhereADriverFails) {
  for (const auto& [function, result] :
       {std::pair{"cuLaunchKernel", illegal_address}, {"execution", illegal_address}, {"cuEventRecord", out_of_memory}})
    EXPECT_EQ(0, run_ranks(3, [&, function = function, result = result](DeviceRank& rank) -> std::string {
                constexpr std::size_t count = 10'000;
                std::byte* both = rank.numbered(count);
                PLAIT_WANT(rank.run(rank.sum(both, both, count)).ok());
                if (rank.rank() == 1) rank.fail(function, 0, result);
                const Status failed = rank.run(rank.sum(both, both, count));
                PLAIT_WANT(!failed.ok());
                // Nothing writes to memory that the others have back.
                PLAIT_WANT(rank.call<decltype(fake_cuda_pending)>("fake_cuda_pending")() == 0);
                const bool named =
                    failed.message().find(rank.rank() == 1 ? "CUDA_ERROR" : "rank 1") != std::string::npos;
                return named ? "" : failed.message();
              }));
}

// A rank that gives up while the others work on its memory leaves none waiting, nor later calls.
TEST(DeviceCollective, EndsWhereARankGivesUp) {
  EXPECT_EQ(0, run_ranks(3, [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 10'000;
              std::byte* both = rank.numbered(count);
              PLAIT_WANT(rank.run(rank.sum(both, both, count)).ok());
              if (rank.rank() == 2) rank.fail("cuEventQuery", 0, illegal_address);  // once it has begun
              const Status failed = rank.run(rank.sum(both, both, count));
              PLAIT_WANT(!failed.ok());
              PLAIT_WANT(!rank.run(rank.sum(both, both, count)).ok());
              return "";
            }));
}

}  // namespace
}  // namespace plait::tl
