// One call of a collective, made twice with the same input: by the host and by Plait.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/basic.h"
#include "tests/differential/device.h"
#include "tests/differential/layout.h"
#include "tests/differential/memory.h"
#include "tests/persistent_form.h"

namespace plait::test {

enum class Collective {
  barrier,
  bcast,
  reduce,
  allreduce,
  allgather,
  allgatherv,
  gather,
  scatter,
  alltoall,
  reduce_scatter_block,
  reduce_scatter,
  count_,
};
inline constexpr std::size_t collective_count = static_cast<std::size_t>(Collective::count_);
const char* name(Collective collective);
bool reduces(Collective collective);
bool rooted(Collective collective);
bool may_be_in_place(Collective collective);

// A communicator that the calls are made on. Ranks outside it have MPI_COMM_NULL.
struct Party {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = -1;
  int ranks = 0;
  MPI_Comm own = MPI_COMM_SELF;  // this process alone: for the thread that makes the party's calls
};

// What the elements are and how they lie in memory.
enum class Shape {
  plain,    // arrays of the basic type
  derived,  // of different types on each rank and side, with the same signature
  mixed,    // the same of ints, doubles and chars
};

struct Case {
  std::size_t number = 0;  // in the run
  std::uint64_t seed = 0;  // of everything not said here
  Collective collective = Collective::barrier;
  std::size_t party = 0;
  const Basic* basic = nullptr;
  const Operator* op = nullptr;  // of a reduction
  // Basic elements: of the vector, of one rank's contribution or share (about, where they differ), of one pair's
  // message.
  std::size_t count = 0;
  int root = 0;  // modulo the ranks of the party
  bool in_place = false;
  Shape shape = Shape::plain;
  int times = 1;  // that Plait makes the call, where it blocks
};
std::string describe(const Case& test, const Party& party);

enum class Road { host, plait };
enum class Form { blocking, nonblocking, persistent };

// Both calls' buffers. The host is given packed data where it can't cope with the layouts: Open MPI 4.1 chooses its
// algorithms by the local type's size, so that ranks with different types wait for each other for ever, and its
// segmented reductions write over the heap when a type has a negative lower bound, and it writes over the stack when a
// message that it receives into a datatype of its own (Bruck's algorithm) is cut within an element of more than 16
// bytes. MPICH 4.0's gather cuts elements with a gap; its reductions read
// from MPI_IN_PLACE; and its reduce leaves out a node where the root is not the first rank of its own: it makes an
// allreduce instead.
//
// Made, run on both roads in any order, possibly with other trials in between, then judged.
class Trial {
 public:
  Trial(const Case& test, const Party& party, const MixedTypes& mixed);

  const Case& test() const { return test_; }
  const Party& party() const { return party_; }
  // The host's call always blocks. Where Plait's is made several times the host goes first, and each result is compared
  // with its one. After another form the call is under way in `request()`, to be completed by any of
  // MPI's functions, or, of the persistent form, is to be started first; after all runs finish() is called once.
  void run(Road road, Form form = Form::blocking);
  MPI_Request& request() { return request_; }
  void finish();

  // What is wrong with the results on this rank.
  std::optional<std::string> failure() const;
  // Whether Plait has no reason to hand this call to the host.
  bool must_be_accelerated() const;
  // Whether nobody makes the call right: MPICH 4.0 reads from MPI_IN_PLACE in reductions, for which reason the host
  // gets a copy of the input instead, and its allgatherv of one rank overlooks the displacement; and Plait leaves it
  // the call.
  static bool host_fails(const Case& test, const Party& party);
  // Whether the host makes the call right as it is.
  static bool host_copes(const Case& test);
  const std::string& plan() const { return plan_; }
  // Of each time that Plait's blocking call was made.
  const std::vector<std::string>& plans() const { return plans_; }
  // As docs/tuning.md counts the size of a call.
  std::size_t payload() const;
  const std::string& channels() const { return channels_; }
  // Bytes of all the buffers, about; the same on all ranks.
  static std::size_t footprint(const Case& test, const Party& party);

 private:
  // One side of the call on this rank.
  struct Side {
    std::size_t elements = 0;                // basic ones, in all
    std::optional<Layout> layout;            // none: this rank has no such side
    std::vector<int> counts, displacements;  // in layouts, by rank: segments that lie apart
    int items(std::size_t of) const { return static_cast<int>(of / layout->elements()); }
  };

  void settle_counts();
  void settle_sides();
  void place_segments();
  Layout choose_layout(std::size_t elements);
  Reach reach(const Side& side) const;
  std::size_t misalignment();
  // Elements [first, last) of the side's memory.
  void write_input(const Side& side, Memory& memory, std::size_t first, std::size_t last);
  void write_in_place(Memory& memory);
  std::pair<std::size_t, std::size_t> own_input() const;
  std::size_t element_bytes() const { return test_.shape == Shape::mixed ? MixedTypes::size : test_.basic->size; }
  void call_plait(Form form, bool profiling_name);
  void call_again(bool profiling_name);
  int call(Memory* memory, MPI_Op op, Form form, bool profiling_name);
  // Some of the buffers of Plait's call are in memory of the device, if there is one.
  void move_to_device();
  void bring_back();
  std::byte* place(const Memory& memory) const;
  int call_packed();
  int reduce_packed(const std::byte* from, std::byte* to);
  void pack(const Side& side, const Memory& memory, std::size_t first, std::size_t last, std::byte* packed) const;
  void unpack(const Side& side, Memory& memory, std::size_t first, std::size_t last, const std::byte* packed) const;
  std::vector<std::byte> packed_input() const;
  void unpack_expected(const std::vector<std::byte>& packed);
  bool is_root() const { return root_ == party_.rank; }
  bool value_at(std::ptrdiff_t offset) const;
  std::string difference() const;

  const Case& test_;
  const Party& party_;
  const MixedTypes& mixed_;
  Random common_, own_;  // the same on all ranks; this rank's
  int root_ = 0;
  bool in_place_;                    // on this rank
  bool on_host_ = false;             // the current call
  std::vector<std::size_t> counts_;  // elements by rank, where they differ
  std::vector<int> call_counts_;     // the same as an argument
  MPI_Request request_ = MPI_REQUEST_NULL;
  Side send_, receive_;
  std::size_t defined_ = 0;  // elements of the receive side that the call defines
  std::unique_ptr<Memory> input_, expected_, result_;
  std::vector<std::byte> before_;  // what result_ holds before a call that is made several times
  std::optional<DeviceCopy> device_input_, device_result_;
  std::uint64_t input_sum_ = 0;
  int host_code_ = MPI_SUCCESS, plait_code_ = MPI_SUCCESS;
  bool input_kept_ = true;
  std::string plan_, channels_;
  std::vector<std::string> plans_;
  std::optional<std::string> earlier_failure_;  // of a call that was made again
};

}  // namespace plait::test
