// Device memory that is mapped in pieces, as allocators map it that grow in place, and handed on as files.
#include "tl/device/device_pieces.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/tl/device_rank.h"
#include "tl/device/piece_service.h"

namespace plait::tl {
namespace {

using Outcome = DeviceCollective::Outcome;
constexpr std::size_t piece_bytes = 64 * 1024, piece_count = 4, piece_ints = piece_bytes / sizeof(int);
constexpr int invalid_value = 1;

// Addresses of a rank in which its allocator maps piece by piece.
class Segment {
 public:
  explicit Segment(const DeviceRank& rank) : rank_(rank) {
    rank.call<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&begin_, piece_count * piece_bytes, 0, 0, 0);
    for (std::size_t piece = 0; piece < piece_count; ++piece) map(piece);
  }
  // Another one's memory each time; the handle goes at once.
  void map(std::size_t piece) const {
    unsigned long long handle = 0;
    const std::array<int, 3> access{1, 0, 3};  // the device's, to read and write
    const CUdeviceptr at = begin_ + piece * piece_bytes;
    rank_.call<decltype(cuMemCreate)>("cuMemCreate")(&handle, piece_bytes, nullptr, 0);
    rank_.call<decltype(cuMemMap)>("cuMemMap")(at, piece_bytes, 0, handle, 0);
    rank_.call<decltype(cuMemSetAccess)>("cuMemSetAccess")(at, piece_bytes, access.data(), 1);
    rank_.call<decltype(cuMemRelease)>("cuMemRelease")(handle);
  }
  void unmap(std::size_t piece) const {
    rank_.call<decltype(cuMemUnmap)>("cuMemUnmap")(begin_ + piece * piece_bytes, piece_bytes);
  }
  std::byte* at(std::size_t ints) const { return reinterpret_cast<std::byte*>(begin_) + ints * sizeof(int); }

 private:
  const DeviceRank& rank_;
  CUdeviceptr begin_ = 0;
};

long mapped_by(const DeviceRank& rank) { return rank.call<decltype(fake_cuda_mapped)>("fake_cuda_mapped")(); }

class DevicePieces : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, DevicePieces, ::testing::Values(2, 3));

// Vectors that begin and end anywhere in it: in one piece, over two, over all; beside one that CUDA IPC hands on.
TEST_P(DevicePieces, AreOneVector) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              const Segment segment(rank);
              struct Part {
                std::size_t first, count;
              };
              for (const auto& [first, count] : {Part{3, 1000},
                                                 {piece_ints - 5, 11},
                                                 {0, piece_count * piece_ints},
                                                 {piece_ints / 2 + 1, 2 * piece_ints}}) {
                std::byte* both = segment.at(first);
                rank.fill(both, count);
                PLAIT_WANT(rank.run(rank.sum(both, both, count)).ok());
                PLAIT_WANT(rank.collective.outcome() == Outcome::done && rank.is_sum(both, count));
                std::byte* whole = rank.numbered(count);
                rank.fill(both, count);
                std::byte* output = rank.rank() == 0 ? whole : both;
                PLAIT_WANT(rank.run(rank.sum(both, output, count)).ok());
                PLAIT_WANT(rank.collective.outcome() == Outcome::done && rank.is_sum(output, count));
              }
              return "";
            }));
}

// One of its pieces is another one: all other ranks see that, on all communicators, and hold nothing of the old one.
TEST_P(DevicePieces, AreMappedAnewWhereOneIsAnother) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = piece_count * piece_ints;
              const auto others = static_cast<std::size_t>(rank.ranks() - 1);
              const Segment segment(rank);
              DeviceCollective first, second;
              for (std::size_t round = 0; round < 6; ++round) {
                for (DeviceCollective* by : {&first, &second}) {
                  rank.fill(segment.at(0), count);
                  PLAIT_WANT(rank.run_by(*by, rank.sum(segment.at(0), segment.at(0), count)).ok());
                  PLAIT_WANT(by->outcome() == Outcome::done && rank.is_sum(segment.at(0), count));
                }
                PLAIT_WANT(PeerMaps::mapped() == others);  // once for both
                PLAIT_WANT(mapped_by(rank) == static_cast<long>(others * piece_count));
                segment.unmap(1 + round % 2);
                segment.map(1 + round % 2);
              }
              return "";
            }));
}

// It grows: what was mapped stays, beside the longer one that overlaps it.
TEST(DevicePieces, MayOverlapOthers) {
  EXPECT_EQ(0, run_ranks(2, [](DeviceRank& rank) -> std::string {
              const Segment segment(rank);
              for (int round = 0; round < 2; ++round)
                for (const std::size_t count : {piece_ints, 3 * piece_ints, 2 * piece_ints}) {
                  rank.fill(segment.at(0), count);
                  PLAIT_WANT(rank.run(rank.sum(segment.at(0), segment.at(0), count)).ok());
                  PLAIT_WANT(rank.is_sum(segment.at(0), count));
                }
              // The first piece, and three; the third call lies in what the second one has handed on.
              return PeerMaps::mapped() == 2 ? "" : std::to_string(PeerMaps::mapped()) + " are mapped";
            }));
}

// The driver makes no files of it, takes none, or fails in the middle: all ranks know, and nothing stays mapped.
TEST_P(DevicePieces, KnowWhereTheyAreRefused) {
  EXPECT_EQ(0, run_ranks(GetParam(), [](DeviceRank& rank) -> std::string {
              constexpr std::size_t count = 2 * piece_ints;
              const Segment segment(rank);
              rank.fill(segment.at(0), count);
              const auto run = [&](const char* function, long calls) {
                if (rank.rank() == 1) rank.fail(function, calls, not_supported);
                const bool ran = rank.run(rank.sum(segment.at(0), segment.at(0), count)).ok();
                if (rank.rank() == 1) rank.fail(function, -1, 0);
                return ran && rank.data(segment.at(0))[9] == DeviceRank::value(rank.rank(), 9);
              };
              PLAIT_WANT(run("cuMemExportToShareableHandle", 0));
              PLAIT_WANT(rank.collective.outcome() == Outcome::elsewhere);
              for (const char* function :
                   {"cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"})
                for (const long calls : {0L, 1L}) {
                  // A rank with one other one reserves and sets once.
                  const std::string name = function;
                  if (calls == 1 && rank.ranks() == 2 && (name == "cuMemAddressReserve" || name == "cuMemSetAccess"))
                    continue;
                  PLAIT_WANT(run(function, calls));
                  PLAIT_WANT(rank.collective.outcome() == Outcome::refused);
                  PLAIT_WANT(PeerMaps::mapped() == 0 && mapped_by(rank) == 0);
                }
              PLAIT_WANT(rank.run(rank.sum(segment.at(0), segment.at(0), count)).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::done && rank.is_sum(segment.at(0), count));
              return "";
            }));
}

// Part of it is not there, or too much of it.
TEST(DevicePieces, AreNoneWhereSomeIsMissing) {
  EXPECT_EQ(0, run_ranks(2, [](DeviceRank& rank) -> std::string {
              const Segment segment(rank);
              const DeviceDriver& driver = *device_of(segment.at(0));
              const auto pieces = pieces_under(driver, segment.at(1), 2 * piece_bytes);
              PLAIT_WANT(pieces.ok() && pieces->size() == 3 && are_there(driver, *pieces));
              PLAIT_WANT(!pieces_under(driver, segment.at(1), piece_count * piece_bytes).ok());
              segment.unmap(2);
              PLAIT_WANT(!are_there(driver, *pieces));
              PLAIT_WANT(!pieces_under(driver, segment.at(1), 2 * piece_bytes).ok());
              PLAIT_WANT(!lies_whole(driver, driver.memory_at(segment.at(1)), segment.at(1), 2 * piece_bytes));
              std::byte* both = segment.at(0);
              PLAIT_WANT(rank.run(rank.sum(both, both, 3 * piece_ints)).ok());
              PLAIT_WANT(rank.collective.outcome() == Outcome::elsewhere);
              return "";
            }));
}

// Who is asked may be gone, or have it no more: an error that says so, at once.
TEST(PieceService, SaysWhatIsGone) {
  EXPECT_EQ(0, run_ranks(1, [](DeviceRank& rank) -> std::string {
              const Segment segment(rank);
              const DeviceDriver& driver = *device_of(segment.at(0));
              const auto begin = std::chrono::steady_clock::now();
              const auto gone = fetch_pieces(~process_number(), first_offer);
              PLAIT_WANT(!gone.ok() && gone.status().message().find("cannot be asked") != std::string::npos);
              const auto pieces = pieces_under(driver, segment.at(0), 2 * piece_bytes);
              PLAIT_WANT(pieces.ok());
              const auto offer = offer_pieces(driver, *pieces), again = offer_pieces(driver, *pieces);
              PLAIT_WANT(offer.ok() && again.ok() && *offer == *again && is_offer(*offer));
              const auto fetch = [&] { return fetch_pieces(process_number(), *offer); };
              {
                const auto fetched = fetch();
                PLAIT_WANT(fetched.ok() && fetched->pieces().size() == 2);
                PLAIT_WANT(fetched->pieces().front().bytes == piece_bytes);
              }
              withdraw_offer(*offer);
              PLAIT_WANT(fetch().ok());
              segment.unmap(1);
              const auto changed = fetch();
              PLAIT_WANT(!changed.ok() && changed.status().message().find("no more") != std::string::npos);
              withdraw_offer(*offer);
              PLAIT_WANT(!fetch().ok());
              const auto other = offer_pieces(driver, {{1, 2, 3}});
              PLAIT_WANT(other.ok() && *other != *offer);
              PLAIT_WANT(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
              return "";
            }));
}

// However many buffers a program has: those of long ago are told as if they were gone, each once.
TEST(DeviceExports, AreNoMoreThanTheyMayBe) {
  EXPECT_EQ(0, run_ranks(1, [](DeviceRank& rank) -> std::string {
              constexpr std::size_t more = 40;
              DeviceExports exports;
              std::vector<std::byte*> blocks;
              std::vector<std::uint64_t> dropped;
              const DeviceDriver* driver = nullptr;
              for (std::size_t i = 0; i < DeviceExports::most_exports + more; ++i) {
                blocks.push_back(rank.allocate(64));
                driver = device_of(blocks.back());
                const auto place = exports.place_of(*driver, blocks.back(), 64);
                PLAIT_WANT(place.ok() && exports.exported() <= DeviceExports::most_exports);
                PLAIT_WANT(exports.place_of(*driver, blocks.front(), 64).ok());  // that one is in use all the time
                for (const std::uint64_t one : exports.look_for_freed(*driver))
                  if (one != 0) dropped.push_back(one);
              }
              PLAIT_WANT(dropped.size() == more);
              const auto number = [&](std::size_t i) { return driver->memory_at(blocks[i]).allocation; };
              for (std::size_t i = 0; i < more; ++i) PLAIT_WANT(dropped[i] == number(i + 1));
              return "";
            }));
}

// Whatever is pushed out or gone is told at once: who hears of it late may take what it still maps for other memory.
TEST(DeviceExports, AreToldAtOnceWhenTheyGo) {
  EXPECT_EQ(0, run_ranks(1, [](DeviceRank& rank) -> std::string {
              DeviceExports exports;
              std::vector<std::byte*> blocks;
              std::size_t placed = 0, told = 0;
              const auto place = [&] {
                std::byte* block = rank.allocate(64);
                placed += exports.place_of(*device_of(block), block, 64).ok() ? 1 : 0;
                return block;
              };
              for (std::size_t i = 0; i < DeviceExports::most_exports; ++i) blocks.push_back(place());
              std::vector<std::byte*> kept(DeviceExports::most_exports);  // so that no address is used again
              for (std::byte*& one : kept) one = rank.allocate(64);
              for (std::byte* block : blocks) rank.release(block);
              for (int call = 0; call < 20; ++call) {
                const DeviceDriver& driver = *device_of(place());
                place();
                for (const std::uint64_t one : exports.look_for_freed(driver)) told += one != 0 ? 1 : 0;
                PLAIT_WANT(placed - exports.exported() == told);
              }
              return "";
            }));
}

// An offer is gone when any of its pieces is, after as many looks as it has.
TEST(DeviceExports, TellOfPiecesThatAreGone) {
  EXPECT_EQ(0, run_ranks(1, [](DeviceRank& rank) -> std::string {
              const Segment segment(rank);
              const DeviceDriver& driver = *device_of(segment.at(0));
              DeviceExports exports;
              const auto place = exports.place_of(driver, segment.at(0), piece_count * piece_bytes);
              PLAIT_WANT(place.ok() && is_offer(place->allocation) && place->bytes == piece_count * piece_bytes);
              for (std::size_t look = 0; look < piece_count; ++look)
                PLAIT_WANT(exports.look_for_freed(driver).front() == 0);
              segment.unmap(2);
              std::uint64_t told = 0;
              for (std::size_t look = 0; look < piece_count && told == 0; ++look)
                told = exports.look_for_freed(driver).front();
              PLAIT_WANT(told == place->allocation && exports.exported() == 0);
              PLAIT_WANT(!fetch_pieces(process_number(), told).ok());
              return "";
            }));
}

}  // namespace
}  // namespace plait::tl
