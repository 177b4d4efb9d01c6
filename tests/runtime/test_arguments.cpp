// What the arguments of collectives ask for, on one rank of four, without a call.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/arguments/moved_data.h"
#include "runtime/arguments/neighbor_pieces.h"
#include "runtime/arguments/pieces.h"
#include "runtime/arguments/reductions.h"
#include "runtime/progress/progress.h"
#include "tests/runtime/process.h"

namespace plait::runtime {
namespace {

constexpr int ranks = 4;

class OneRank final : public Communicator {
 public:
  OneRank(Progress& progress, int own) : Communicator(progress) {
    rank = own;
    Communicator::ranks = runtime::ranks;
  }
  Result<std::unique_ptr<Team>> connect(TeamExtent, std::unique_ptr<Team>) noexcept override {
    return Status(Code::unavailable, "never connected");
  }
  void decline_set_up() noexcept override {}
  int raise(int code) override { return code; }
};

constexpr std::size_t number = sizeof(double);
constexpr Layout dense = {.size = number,
                          .extent = number,
                          .lower_bound = 0,
                          .true_lower_bound = 0,
                          .true_extent = number,
                          .contiguous = true,
                          .gapless = true};
constexpr Layout sparse = {.size = number,
                           .extent = 3 * number,
                           .lower_bound = 0,
                           .true_lower_bound = 0,
                           .true_extent = number,
                           .contiguous = false,
                           .gapless = true};
constexpr const char* wrong = reasons::wrong_argument;

class Arguments : public testing::Test {
 protected:
  Process process{ranks};
  Arguments() {
    reducers[static_cast<std::size_t>(Op::sum)] = make_reducer(Op::sum, Element::f64);
    static_cast<Layout&>(doubles) = dense;
    doubles.predefined = true;
    doubles.reducers = reducers.data();
    static_cast<Layout&>(made) = sparse;
  }
  Request& request(Collective collective) {
    lists = {};
    asked = {};
    asked.call.collective = collective;
    asked.lists = &lists;
    return asked;
  }
  std::byte* at(std::size_t element) { return reinterpret_cast<std::byte*>(data.data() + element); }
  Elements elements(std::ptrdiff_t count, const Layout& layout = dense) { return {data.data(), count, &layout}; }
  Elements results(std::ptrdiff_t count, const Layout& layout = dense) { return {data.data() + 100, count, &layout}; }
  Operands operands(const void* send, const Operator& op) { return {send, data.data() + 100, &doubles, &op}; }

  Progress progress{{}};
  OneRank root{progress, 0}, other{progress, 2};
  Lists lists;
  Request asked;
  std::vector<double> data = std::vector<double>(200);
  std::array<Reducer, static_cast<std::size_t>(Op::count_)> reducers{};
  TypeFacts doubles, made;
  const Operator sum{Op::sum}, product{Op::prod}, own{.own = OperatorHandle{7}, .commutative = false};
};

// ---- Data that is moved ----

TEST_F(Arguments, OfABroadcastAreTheRootsInputAndTheOthersOutput) {
  Request& one = request(Collective::bcast);
  ASSERT_STREQ(prepare_bcast(root, one, data.data(), 3, &dense, 0), eligible);
  EXPECT_EQ(one.input.address, at(0));
  EXPECT_EQ(one.call.count, 3 * number);
  EXPECT_TRUE(one.input.direct);
  EXPECT_EQ(one.output.type, nullptr);
  Request& two = request(Collective::bcast);
  ASSERT_STREQ(prepare_bcast(other, two, data.data(), 3, &sparse, 0), eligible);
  EXPECT_EQ(two.output.bytes, 3 * number);
  EXPECT_FALSE(two.output.direct);
  EXPECT_EQ(two.input.type, nullptr);
}

TEST_F(Arguments, MustBeCheckedByTheCallerWhereTheyAreWrong) {
  Request& one = request(Collective::bcast);
  EXPECT_STREQ(prepare_bcast(root, one, data.data(), 3, &dense, ranks), wrong);
  EXPECT_STREQ(prepare_bcast(root, one, data.data(), 3, &dense, -1), wrong);
  EXPECT_STREQ(prepare_bcast(root, one, data.data(), -3, &dense, 0), wrong);
  EXPECT_STREQ(prepare_bcast(root, one, data.data(), 3, nullptr, 0), wrong);
  EXPECT_STREQ(prepare_bcast(root, one, nullptr, 3, &dense, 0), wrong);
  EXPECT_STREQ(prepare_bcast(root, one, in_place(), 3, &dense, 0), wrong);
  EXPECT_STREQ(prepare_bcast(root, one, nullptr, 0, &dense, 0), reasons::no_data);
  EXPECT_STREQ(prepare_bcast(root, one, nullptr, 3, &sparse, 0), eligible);  // a layout that may hold addresses
}

TEST_F(Arguments, OfAnAllgatherMayHaveTheInputInTheOutput) {
  Request& one = request(Collective::allgather);
  ASSERT_STREQ(prepare_allgather(other, one, {in_place()}, results(5)), eligible);
  EXPECT_EQ(one.sharing, Sharing::input_in_output);
  EXPECT_EQ(one.input.address, at(100 + 2 * 5));
  EXPECT_EQ(one.own_offset, 2 * 5 * number);
  EXPECT_EQ(one.call.count, 5 * number);
  EXPECT_EQ(one.output.count, 20u);
  EXPECT_STREQ(prepare_allgather(other, request(Collective::allgather), elements(4), results(5)), wrong);
  EXPECT_STREQ(prepare_allgather(other, request(Collective::allgather), elements(5, sparse), results(5)), eligible);
}

TEST_F(Arguments, OfRootedCollectivesAreSignificantWhereMpiSaysSo) {
  Request& gathered = request(Collective::gather);
  ASSERT_STREQ(prepare_gather(other, gathered, elements(5), {}, 0), eligible);
  EXPECT_EQ(gathered.output.type, nullptr);
  EXPECT_STREQ(prepare_gather(root, request(Collective::gather), elements(5), {}, 0), wrong);
  Request& scattered = request(Collective::scatter);
  ASSERT_STREQ(prepare_scatter(root, scattered, elements(5), {in_place()}, 0), eligible);
  EXPECT_EQ(scattered.sharing, Sharing::output_in_input);
  EXPECT_EQ(scattered.call.count, 5 * number);
  EXPECT_STREQ(prepare_scatter(root, request(Collective::scatter), elements(5), results(4), 0), wrong);
  EXPECT_STREQ(prepare_scatter(other, request(Collective::scatter), {}, results(4), 0), eligible);
  EXPECT_STREQ(prepare_scatter(other, request(Collective::scatter), {}, {in_place()}, 0), wrong);
}

TEST_F(Arguments, OfAnAlltoallInPlaceAreCopied) {
  Request& one = request(Collective::alltoall);
  ASSERT_STREQ(prepare_alltoall(other, one, {in_place()}, results(5)), eligible);
  EXPECT_TRUE(one.copy_input);
  EXPECT_EQ(one.input.address, one.output.address);
  EXPECT_EQ(one.input.bytes, ranks * 5 * number);
}

TEST_F(Arguments, OfSegmentsThatFollowEachOtherNameNoPlaces) {
  const std::array<int, ranks> counts = {2, 0, 3, 1}, displacements = {10, 99, 12, 15};
  const Segments segments{data.data(), counts.data(), displacements.data(), &dense};
  Request& one = request(Collective::allgatherv);
  ASSERT_STREQ(prepare_allgatherv(other, one, {in_place()}, segments), eligible);
  EXPECT_EQ(one.displacements, nullptr);
  EXPECT_EQ(one.output.address, at(10));
  EXPECT_EQ(one.input.address, at(12));
  EXPECT_EQ(one.own_offset, 2 * number);
  EXPECT_EQ(one.call.counts, lists.counts.data());
  EXPECT_EQ(lists.counts, (std::vector<std::size_t>{2 * number, 0, 3 * number, number}));
}

TEST_F(Arguments, OfSegmentsApartSayWhereTheyLie) {
  const std::array<int, ranks> counts = {2, 0, 3, 1}, displacements = {10, 99, 20, 4}, none = {};
  const Segments segments{data.data(), counts.data(), displacements.data(), &dense};
  Request& one = request(Collective::allgatherv);
  ASSERT_STREQ(prepare_allgatherv(other, one, results(3), segments), eligible);
  EXPECT_EQ(one.output.address, at(4));
  ASSERT_NE(one.displacements, nullptr);
  EXPECT_EQ(lists.displacements, (std::vector<std::size_t>{6 * number, 2 * number, 16 * number, 0}));
  EXPECT_STREQ(prepare_allgatherv(other, request(Collective::allgatherv), results(2), segments), wrong);
  EXPECT_STREQ(prepare_allgatherv(other, request(Collective::allgatherv), results(0),
                                  {data.data(), none.data(), none.data(), &dense}),
               reasons::no_data);
}

// ---- Reductions ----

TEST_F(Arguments, OfAReductionNameItsKernel) {
  Request& one = request(Collective::allreduce);
  ASSERT_STREQ(prepare_allreduce(one, data.data(), at(100), 6, &doubles, &sum), eligible);
  EXPECT_EQ(one.reducer, &reducers[static_cast<std::size_t>(Op::sum)]);
  EXPECT_EQ(one.call.count, 6u);
  EXPECT_EQ(one.call.element_bytes, number);
  EXPECT_EQ(one.sharing, Sharing::none);
  EXPECT_EQ(one.user, nullptr);
}

TEST_F(Arguments, OfOneAddressForBothMeanThatTheDataLieInPlace) {
  for (const void* send : {in_place(), static_cast<const void*>(at(100))}) {
    Request& one = request(Collective::allreduce);
    ASSERT_STREQ(prepare_allreduce(one, send, at(100), 6, &doubles, &sum), eligible);
    EXPECT_EQ(one.sharing, Sharing::input_in_output);
    EXPECT_EQ(one.input.address, at(100));
    Request& shares = request(Collective::reduce_scatter_block);
    ASSERT_STREQ(prepare_reduce_scatter_block(other, shares, operands(send, sum), 6), eligible);
    EXPECT_TRUE(shares.copy_input);
    EXPECT_EQ(shares.input.bytes, ranks * 6 * number);
    EXPECT_EQ(shares.output.bytes, 6 * number);
  }
}

TEST_F(Arguments, OfReductionsThatNobodyHasSayWhy) {
  Request& one = request(Collective::allreduce);
  EXPECT_STREQ(prepare_allreduce(one, at(0), at(100), 6, &doubles, &product), reasons::undefined_operator);
  EXPECT_STREQ(prepare_allreduce(one, at(0), at(100), 6, &made, &sum), reasons::derived_type);
  EXPECT_STREQ(prepare_allreduce(one, at(0), at(100), 6, &doubles, nullptr), wrong);
  EXPECT_STREQ(prepare_allreduce(one, at(0), at(100), 6, nullptr, &sum), wrong);
  EXPECT_STREQ(prepare_allreduce(one, at(0), at(100), 0, &doubles, &sum), reasons::no_data);
  TypeFacts large = made;
  large.size = 4097;
  EXPECT_STREQ(prepare_allreduce(one, at(0), at(100), 1, &large, &own), reasons::long_element);
}

TEST_F(Arguments, OfAnOperatorOfTheProgramsOwnTravelPacked) {
  Request& one = request(Collective::allreduce);
  ASSERT_STREQ(prepare_allreduce(one, data.data(), at(100), 6, &made, &own), eligible);
  EXPECT_EQ(one.user, &lists.user);
  EXPECT_EQ(one.reducer, &lists.user.reducer());
  EXPECT_FALSE(one.call.commutative);
  EXPECT_EQ(one.call.element_bytes, number);
  EXPECT_FALSE(one.input.direct);
}

TEST_F(Arguments, OfAReduceHaveAResultAtTheRoot) {
  Request& one = request(Collective::reduce);
  ASSERT_STREQ(prepare_reduce(other, one, operands(data.data(), sum), 6, 0), eligible);
  EXPECT_EQ(one.output.type, nullptr);
  EXPECT_STREQ(prepare_reduce(other, request(Collective::reduce), operands(in_place(), sum), 6, 0), wrong);
  EXPECT_STREQ(prepare_reduce(root, request(Collective::reduce), operands(in_place(), sum), 6, 0), eligible);
}

TEST_F(Arguments, OfAnUnevenReduceScatterNameEachShare) {
  const std::array<int, ranks> counts = {1, 2, 3, 0}, negative = {1, -1, 0, 0};
  Request& one = request(Collective::reduce_scatter);
  ASSERT_STREQ(prepare_reduce_scatter(other, one, operands(data.data(), sum), counts.data()), eligible);
  EXPECT_EQ(one.input.bytes, 6 * number);
  EXPECT_EQ(one.output.bytes, 3 * number);
  EXPECT_EQ(lists.counts, (std::vector<std::size_t>{1, 2, 3, 0}));
  Request& two = request(Collective::reduce_scatter);
  EXPECT_STREQ(prepare_reduce_scatter(other, two, operands(data.data(), sum), negative.data()), wrong);
}

TEST_F(Arguments, OfAnExclusiveScanHaveNoResultAtTheFirstRank) {
  Request& first = request(Collective::exscan);
  ASSERT_STREQ(prepare_scan(root, first, operands(data.data(), sum), 6, Prefix::exclusive), eligible);
  EXPECT_EQ(first.output.type, nullptr);
  Request& later = request(Collective::exscan);
  ASSERT_STREQ(prepare_scan(other, later, operands(in_place(), sum), 6, Prefix::exclusive), eligible);
  EXPECT_EQ(later.sharing, Sharing::none);
  EXPECT_EQ(later.own_offset, 2 * 6 * number);
  EXPECT_EQ(later.input.address, at(100));
}

// ---- Pieces ----

struct LookUps {
  std::array<const Layout*, ranks> layouts;
  mutable int asked = 0;
};
const Layout* look_up(const void* types, int place) {
  const auto& all = *static_cast<const LookUps*>(types);
  ++all.asked;
  return all.layouts[static_cast<std::size_t>(place)];
}

TEST_F(Arguments, OfPiecesAreReadWhereTheyHaveData) {
  const std::array<int, ranks> counts = {2, 0, 1, 3}, displacements = {0, 9999, 4, 8};
  const Pieces one{data.data(), counts.data(), displacements.data(), &sparse};
  const LookUps types{{&dense, nullptr, &sparse, &dense}};
  const Pieces several{data.data(), counts.data(), displacements.data(), nullptr, {&types, look_up}};
  Request& request = this->request(Collective::alltoallw);
  ASSERT_STREQ(prepare_exchange(other, request, one, several), eligible);
  EXPECT_EQ(lists.sends[2].address, at(4 * 3));
  EXPECT_EQ(lists.receives[2].address, at(0) + 4);
  EXPECT_EQ(lists.receives[2].type, &sparse);
  EXPECT_EQ(lists.sends[1].address, nullptr);
  EXPECT_EQ(types.asked, 3);
  EXPECT_EQ(request.call.count, 2 * 6 * number);
}

TEST_F(Arguments, OfPiecesMustBeCheckedWhereSomeIsMissing) {
  const std::array<int, ranks> counts = {2, 0, -1, 3}, none = {}, displacements = {};
  const Pieces right{data.data(), none.data(), displacements.data(), &dense};
  const auto reason = [&](const Pieces& send) {
    return prepare_exchange(other, request(Collective::alltoallv), send, right);
  };
  EXPECT_STREQ(reason(right), eligible);
  EXPECT_STREQ(reason({in_place(), none.data(), displacements.data(), &dense}), reasons::in_place_exchange);
  EXPECT_STREQ(reason({data.data(), counts.data(), displacements.data(), &dense}), wrong);
  EXPECT_STREQ(reason({data.data(), nullptr, displacements.data(), &dense}), wrong);
  EXPECT_STREQ(reason({data.data(), none.data(), nullptr, &dense}), wrong);
  EXPECT_STREQ(reason({data.data(), none.data(), displacements.data(), nullptr}), wrong);
}

TEST_F(Arguments, OfRootedPiecesLeaveTheRootsOwnInPlace) {
  const std::array<int, ranks> counts = {2, 1, 1, 1}, displacements = {0, 2, 3, 4};
  const Pieces all{data.data(), counts.data(), displacements.data(), &dense};
  ASSERT_STREQ(prepare_gatherv(root, request(Collective::gatherv), 0, {in_place()}, all), eligible);
  EXPECT_EQ(lists.receives[0].bytes, 0u);
  EXPECT_EQ(lists.receives[3].address, at(4));
  ASSERT_STREQ(prepare_gatherv(other, request(Collective::gatherv), 0, elements(1), {}), eligible);
  EXPECT_EQ(lists.sends[0].address, at(0));
  EXPECT_EQ(lists.sends[2].bytes, 0u);
  EXPECT_STREQ(prepare_gatherv(other, request(Collective::gatherv), 0, {in_place(), 1}, {}), wrong);
  ASSERT_STREQ(prepare_scatterv(root, request(Collective::scatterv), 0, all, {in_place()}), eligible);
  EXPECT_EQ(lists.sends[1].address, at(2));
  EXPECT_STREQ(prepare_scatterv(root, request(Collective::scatterv), 0, {}, elements(1)), wrong);
}

TEST_F(Arguments, OfNeighborsLieAtTheirPlaces) {
  const Neighbors neighbors = neighbors_from({.sources = {1, -1, 0}, .destinations = {3, 1}}, -1);
  Request& one = request(Collective::neighbor_alltoall);
  ASSERT_STREQ(prepare_neighbor_alltoall(&neighbors, one, elements(2), results(2)), eligible);
  EXPECT_EQ(one.call.count, 2 * number);
  EXPECT_EQ(lists.sends[0].address, at(2));  // to rank 1
  EXPECT_EQ(lists.receives[0].address, at(100 + 2 * 2));
  const std::array<int, 3> counts = {1, 0, 2};
  const std::array<std::ptrdiff_t, 3> displacements = {8, 0, 64};
  const LookUps types{{&dense, &dense, &dense}};
  const Pieces apart{.address = data.data(),
                     .counts = counts.data(),
                     .layouts = {&types, look_up},
                     .byte_displacements = displacements.data()};
  ASSERT_STREQ(prepare_neighbor_alltoallv(&neighbors, request(Collective::neighbor_alltoallw), apart, apart), eligible);
  EXPECT_EQ(lists.receives[0].address, at(8));
  EXPECT_EQ(lists.receives[0].bytes, 2 * number);
}

TEST_F(Arguments, OfNeighborsGetOneSendForAllOfThem) {
  const Neighbors two_edges = neighbors_from({.sources = {}, .destinations = {1, 3, 1}}, -1);
  ASSERT_STREQ(prepare_neighbor_allgather(&two_edges, request(Collective::neighbor_allgather), elements(2), results(2)),
               eligible);
  EXPECT_EQ(lists.sends.size(), 2u);
  const Neighbors none = neighbors_from({.sources = {0}, .destinations = {}}, -1);
  Request& one = request(Collective::neighbor_allgather);
  ASSERT_STREQ(prepare_neighbor_allgather(&none, one, {}, results(2)), eligible);
  EXPECT_EQ(one.call.count, 2 * number);
  EXPECT_STREQ(
      prepare_neighbor_allgather(&two_edges, request(Collective::neighbor_allgather), {in_place()}, results(2)), wrong);
  EXPECT_STREQ(prepare_neighbor_allgather(nullptr, request(Collective::neighbor_allgather), {}, {}), eligible);
}

}  // namespace
}  // namespace plait::runtime
