#include "tests/differential/trial.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "tests/differential/binding.h"

namespace plait::test {
namespace {

// Where a rank has no such argument, MPI must not look at it.
// NOLINTNEXTLINE(performance-no-int-to-ptr): an address that nothing is at
void* const no_buffer = reinterpret_cast<void*>(std::uintptr_t{0xBAD});
constexpr int no_count = -7;

constexpr std::array<const char*, collective_count> names = {
    "barrier",       "bcast",  "reduce",  "allreduce", "allgather",
    "allgatherv",    "gather", "scatter", "alltoall",  "reduce_scatter_block",
    "reduce_scatter"};

std::size_t blocks(Collective collective, int ranks) {
  switch (collective) {
    case Collective::barrier:
      return 0;
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
      return 1;
    default:
      return static_cast<std::size_t>(ranks);
  }
}

}  // namespace

const char* name(Collective collective) { return names[static_cast<std::size_t>(collective)]; }

bool reduces(Collective collective) {
  return collective == Collective::reduce || collective == Collective::allreduce ||
         collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_block;
}

bool rooted(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

bool may_be_in_place(Collective collective) {
  return collective != Collective::barrier && collective != Collective::bcast;
}

bool Trial::host_fails([[maybe_unused]] const Case& test, [[maybe_unused]] const Party& party) {
#ifdef MPICH_VERSION
  const bool is_its_own = party.ranks < 2 || (test.op != nullptr && !test.op->required);
  return is_its_own && (test.collective == Collective::allgatherv || (test.op != nullptr && test.in_place));
#else
  return false;
#endif
}

bool Trial::host_copes(const Case& test) {
  if (test.basic == nullptr) return true;
  if (test.op != nullptr) return test.basic->dense == MPI_DATATYPE_NULL && test.op->corrected == MPI_OP_NULL;
#ifdef MPICH_VERSION
  if (test.basic->size != test.basic->extent) return false;
#endif
  return test.shape == Shape::plain && test.basic->size <= 16;
}

std::string describe(const Case& test, const Party& party) {
  std::string text = "case " + std::to_string(test.number) + ": " + name(test.collective) + " on " + party.name +
                     " of " + std::to_string(party.ranks);
  if (test.collective == Collective::barrier) return text;
  text += test.shape == Shape::plain   ? ", " + test.basic->name
          : test.shape == Shape::mixed ? ", mixed types"
                                       : ", layouts of " + test.basic->name;
  if (test.op != nullptr) text += ", " + test.op->name;
  text += ", count " + std::to_string(test.count);
  if (rooted(test.collective)) text += ", root " + std::to_string(test.root % std::max(party.ranks, 1));
  if (test.in_place) text += ", in place";
  return text;
}

std::size_t Trial::footprint(const Case& test, const Party& party) {
  if (test.basic == nullptr) return 0;
  return 6 * test.count * test.basic->extent * blocks(test.collective, party.ranks);
}

// ---- Making the buffers ----

Trial::Trial(const Case& test, const Party& party, const MixedTypes& mixed)
    : test_(test),
      party_(party),
      mixed_(mixed),
      common_(test.seed),
      own_(derive(test.seed, 1, static_cast<std::uint64_t>(party.rank))),
      in_place_(test.in_place) {
  if (test.collective == Collective::barrier) return;
  root_ = test.root % party.ranks;
  // Only the root of a rooted collective is in place.
  if (rooted(test.collective) && !is_root()) in_place_ = false;
  settle_counts();
  settle_sides();
  if (send_.layout) {
    input_ = std::make_unique<Memory>(reach(send_), misalignment(), own_.next());
    write_input(send_, *input_, 0, send_.elements);
    input_sum_ = checksum(input_->all());
  }
  if (!receive_.layout) return;
  if (test.collective == Collective::allgatherv) place_segments();
  const std::size_t offset = misalignment();
  const std::uint64_t canaries = own_.next();
  expected_ = std::make_unique<Memory>(reach(receive_), offset, canaries);
  result_ = std::make_unique<Memory>(reach(receive_), offset, canaries);
  write_in_place(*expected_);
  std::memcpy(result_->all().data(), expected_->all().data(), result_->all().size());
  if (test_.times > 1) before_.assign(result_->all().begin(), result_->all().end());
}

// Equal, scattered, all on one rank, or rising.
void Trial::settle_counts() {
  counts_.assign(static_cast<std::size_t>(party_.ranks), test_.count);
  if (test_.collective != Collective::allgatherv && test_.collective != Collective::reduce_scatter) return;
  const std::size_t unit = test_.shape == Shape::plain ? 1 : layout_multiple;
  const std::size_t style = common_.below(4), chosen = common_.below(counts_.size());
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    if (style == 1) counts_[rank] = common_.below(2 * test_.count / unit + 1) * unit;
    if (style == 2 && rank != chosen) counts_[rank] = 0;
    if (style == 3) counts_[rank] += rank * unit;
  }
}

void Trial::settle_sides() {
  const std::size_t count = test_.count, all = std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
  const std::size_t mine = counts_[static_cast<std::size_t>(party_.rank)];
  bool sends = true, receives = true;
  switch (test_.collective) {
    case Collective::bcast:
      sends = false;
      receive_.elements = count;
      break;
    case Collective::reduce:
      receives = is_root();
      [[fallthrough]];
    case Collective::allreduce:
      send_.elements = receive_.elements = count;
      break;
    case Collective::gather:
      receives = is_root();
      [[fallthrough]];
    case Collective::allgather:
    case Collective::allgatherv:
      send_.elements = mine;
      receive_.elements = all;
      break;
    case Collective::scatter:
      sends = is_root();
      send_.elements = all;
      receive_.elements = mine;
      break;
    case Collective::alltoall:
      send_.elements = receive_.elements = all;
      break;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_block:
      send_.elements = all;
      receive_.elements = in_place_ ? all : mine;
      break;
    default:
      break;
  }
  defined_ = test_.collective == Collective::reduce_scatter || test_.collective == Collective::reduce_scatter_block
                 ? mine
                 : receive_.elements;
  if (in_place_) (test_.collective == Collective::scatter ? receives : sends) = false;
  if (sends) send_.layout.emplace(choose_layout(send_.elements));
  if (receives) receive_.layout.emplace(choose_layout(receive_.elements));
}

Layout Trial::choose_layout(std::size_t elements) {
  if (test_.shape == Shape::plain) return Layout::borrowed(test_.basic->handle);
  const MPI_Datatype basic = test_.shape == Shape::mixed ? mixed_.any(own_) : test_.basic->handle;
  // Some ranks use the basic type itself, as the other side of the same signature.
  if (own_.one_in(4)) return Layout::borrowed(basic);
  return Layout::derived(basic, elements / 4, own_);
}

// Segments in any order, with gaps, at places that other ranks don't share.
void Trial::place_segments() {
  const Layout& layout = *receive_.layout;
  const bool following = own_.one_in(2);
  std::vector<std::size_t> order(counts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!following)
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[own_.below(i)]);
  receive_.counts.resize(order.size());
  receive_.displacements.resize(order.size());
  MPI_Aint end = 0;  // bytes
  for (const std::size_t rank : order) {
    const int items = receive_.items(counts_[rank]);
    const MPI_Aint from =
        std::max<MPI_Aint>(0, end - layout.true_lower_bound() + layout.extent() - 1) / layout.extent();
    const int place = static_cast<int>(from) + (following ? 0 : own_.between(0, 3));
    receive_.counts[rank] = items;
    // An empty segment's place means nothing.
    receive_.displacements[rank] = items > 0 ? place : own_.between(-1000000, 1000000);
    if (items > 0) end = (place + items - 1) * layout.extent() + layout.true_lower_bound() + layout.true_extent();
  }
}

Reach Trial::reach(const Side& side) const {
  Reach reach;
  const Layout& layout = *side.layout;
  const auto include = [&](MPI_Aint first_item, int items) {
    if (items <= 0) return;
    const MPI_Aint from = first_item * layout.extent() + layout.true_lower_bound();
    reach.include(from, from + (items - 1) * layout.extent() + layout.true_extent());
  };
  if (side.counts.empty()) include(0, side.items(side.elements));
  for (std::size_t rank = 0; rank < side.counts.size(); ++rank) include(side.displacements[rank], side.counts[rank]);
  return reach;
}

// Data may be moved from and to any address; the host's reductions want their elements aligned.
std::size_t Trial::misalignment() {
  const std::size_t unit = test_.op != nullptr ? test_.basic->alignment : 1;
  return own_.one_in(3) ? 0 : own_.below(64) / unit * unit;
}

void Trial::write_input(const Side& side, Memory& memory, std::size_t first, std::size_t last) {
  const Layout& layout = *side.layout;
  if (test_.op != nullptr && test_.basic->fill != nullptr) {
    std::byte* to = memory.address() + static_cast<std::ptrdiff_t>(first) * layout.extent();
    return test_.basic->fill(to, last - first, test_.op->family, own_);
  }
  const int items = side.items(last - first);
  std::vector<std::uint64_t> packed(static_cast<std::size_t>(items) * layout.size() / 8 + 1);
  for (std::uint64_t& word : packed) word = own_.next();
  unpack(side, memory, first, last, reinterpret_cast<const std::byte*>(packed.data()));
}

void Trial::unpack(const Side& side, Memory& memory, std::size_t first, std::size_t last,
                   const std::byte* packed) const {
  const Layout& layout = *side.layout;
  const int items = side.items(last - first);
  int position = 0;
  MPI_Unpack(packed, items * static_cast<int>(layout.size()), &position,
             memory.address() + side.items(first) * layout.extent(), items, layout.type(), MPI_COMM_SELF);
}

void Trial::pack(const Side& side, const Memory& memory, std::size_t first, std::size_t last, std::byte* packed) const {
  const Layout& layout = *side.layout;
  const int items = side.items(last - first);
  int position = 0;
  MPI_Pack(memory.address() + side.items(first) * layout.extent(), items, layout.type(), packed,
           items * static_cast<int>(layout.size()), &position, MPI_COMM_SELF);
}

// What the receive side holds before the call: with MPI_IN_PLACE, or at the root of a bcast, the input.
void Trial::write_in_place(Memory& memory) {
  if (test_.collective == Collective::bcast && is_root()) return write_input(receive_, memory, 0, receive_.elements);
  if (!in_place_) return;
  const auto [first, last] = own_input();
  write_input(receive_, memory, first, last);
}

// The elements of the receive side that hold this rank's input with MPI_IN_PLACE.
std::pair<std::size_t, std::size_t> Trial::own_input() const {
  const auto rank = static_cast<std::size_t>(party_.rank);
  switch (test_.collective) {
    case Collective::gather:
    case Collective::allgather:
      return {rank * test_.count, (rank + 1) * test_.count};
    case Collective::allgatherv: {
      if (receive_.counts[rank] == 0) return {0, 0};
      const std::size_t first = static_cast<std::size_t>(receive_.displacements[rank]) * receive_.layout->elements();
      return {first, first + counts_[rank]};
    }
    default:
      return {0, receive_.elements};
  }
}

// ---- Calling ----

#define PLAIT_CALL(Function, function, ...)                                                                   \
  (form == Form::blocking     ? (profiling_name ? PMPI_##Function(__VA_ARGS__) : MPI_##Function(__VA_ARGS__)) \
   : form == Form::persistent ? PLAIT_PERSISTENT(Function)(__VA_ARGS__, MPI_INFO_NULL, &request_)             \
   : profiling_name           ? PMPI_I##function(__VA_ARGS__, &request_)                                      \
                              : MPI_I##function(__VA_ARGS__, &request_))

int Trial::call(Memory* memory, MPI_Op op, Form form, bool profiling_name) {
  const MPI_Comm comm = party_.comm;
  const int ranks = party_.ranks;
  const bool has_send = send_.layout.has_value(), has_receive = receive_.layout.has_value();
  const bool replaced = in_place_ && test_.collective != Collective::scatter;
  const void* from = has_send ? place(*input_) : replaced ? MPI_IN_PLACE : no_buffer;
  void* to = has_receive ? place(*memory) : in_place_ ? MPI_IN_PLACE : no_buffer;
#ifdef MPICH_VERSION
  std::vector<std::byte> copy, elsewhere;
  if (on_host_ && from == MPI_IN_PLACE && test_.op != nullptr) {
    copy.assign(memory->all().begin(), memory->all().end());
    from = copy.data() + (static_cast<std::byte*>(to) - memory->all().data());
  }
  if (on_host_ && test_.collective == Collective::reduce) {
    elsewhere.resize(has_receive ? 0 : test_.count * test_.basic->extent);
    return MPI_Allreduce(from, has_receive ? to : elsewhere.data(), static_cast<int>(test_.count), test_.basic->handle,
                         op, comm);
  }
#endif
  const MPI_Datatype from_type = has_send ? send_.layout->type() : MPI_DATATYPE_NULL;
  const MPI_Datatype to_type = has_receive ? receive_.layout->type() : MPI_DATATYPE_NULL;
  const MPI_Datatype type = test_.basic != nullptr ? test_.basic->handle : MPI_DATATYPE_NULL;
  const auto from_count = [&](int parts) { return has_send ? send_.items(send_.elements) / parts : no_count; };
  const auto to_count = [&](int parts) { return has_receive ? receive_.items(receive_.elements) / parts : no_count; };
  const int count = static_cast<int>(test_.count);
  switch (test_.collective) {
    case Collective::barrier:
      return PLAIT_CALL(Barrier, barrier, comm);
    case Collective::bcast:
      return PLAIT_CALL(Bcast, bcast, to, to_count(1), to_type, root_, comm);
    case Collective::reduce:
      return PLAIT_CALL(Reduce, reduce, from, to, count, type, op, root_, comm);
    case Collective::allreduce:
      return PLAIT_CALL(Allreduce, allreduce, from, to, count, type, op, comm);
    case Collective::allgather:
      return PLAIT_CALL(Allgather, allgather, from, from_count(1), from_type, to, to_count(ranks), to_type, comm);
    case Collective::allgatherv:
      return PLAIT_CALL(Allgatherv, allgatherv, from, from_count(1), from_type, to, receive_.counts.data(),
                        receive_.displacements.data(), to_type, comm);
    case Collective::gather:
      return PLAIT_CALL(Gather, gather, from, from_count(1), from_type, to, to_count(ranks), to_type, root_, comm);
    case Collective::scatter:
      return PLAIT_CALL(Scatter, scatter, from, from_count(ranks), from_type, to, to_count(1), to_type, root_, comm);
    case Collective::alltoall:
      return PLAIT_CALL(Alltoall, alltoall, from, from_count(ranks), from_type, to, to_count(ranks), to_type, comm);
    case Collective::reduce_scatter_block:
      return PLAIT_CALL(Reduce_scatter_block, reduce_scatter_block, from, to, count, type, op, comm);
    case Collective::reduce_scatter:
      call_counts_.assign(counts_.begin(), counts_.end());
      return PLAIT_CALL(Reduce_scatter, reduce_scatter, from, to, call_counts_.data(), type, op, comm);
    case Collective::count_:
      break;
  }
  return MPI_ERR_OTHER;
}

#undef PLAIT_CALL

// What the host takes has to be the processor's: it knows no other memory.
void Trial::move_to_device() {
  if (!device_loaded() || !must_be_accelerated()) return;
  const std::size_t rare = host_buffers_one_in();
  if (input_ != nullptr && !own_.one_in(rare)) device_input_.emplace(input_->all());
  if (result_ != nullptr && !own_.one_in(rare)) device_result_.emplace(result_->all());
}

void Trial::bring_back() {
  for (std::optional<DeviceCopy>* copy : {&device_input_, &device_result_}) {
    if (copy->has_value()) (*copy)->bring_back();
    copy->reset();
  }
}

std::byte* Trial::place(const Memory& memory) const {
  const std::optional<DeviceCopy>& copy = &memory == input_.get() ? device_input_ : device_result_;
  return !on_host_ && copy.has_value() ? copy->address_of(memory.address()) : memory.address();
}

std::vector<std::byte> Trial::packed_input() const {
  const bool root_of_bcast = test_.collective == Collective::bcast && is_root();
  const bool received = in_place_ && test_.collective != Collective::scatter;
  if (!send_.layout && !root_of_bcast && !received) return {};
  const Side& side = send_.layout ? send_ : receive_;
  const Memory& memory = send_.layout ? *input_ : *expected_;
  const auto [first, last] = send_.layout    ? std::pair{std::size_t{0}, send_.elements}
                             : root_of_bcast ? std::pair{std::size_t{0}, receive_.elements}
                                             : own_input();
  std::vector<std::byte> packed((last - first) * element_bytes() + 1);
  pack(side, memory, first, last, packed.data());
  return packed;
}

void Trial::unpack_expected(const std::vector<std::byte>& packed) {
  if (test_.collective != Collective::allgatherv) return unpack(receive_, *expected_, 0, defined_, packed.data());
  std::size_t done = 0;
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    const std::size_t first = static_cast<std::size_t>(receive_.displacements[rank]) * receive_.layout->elements();
    if (counts_[rank] > 0) unpack(receive_, *expected_, first, first + counts_[rank], packed.data() + done);
    done += counts_[rank] * element_bytes();
  }
}

int Trial::reduce_packed(const std::byte* from, std::byte* to) {
  const MPI_Datatype type = test_.basic->dense;
  const MPI_Op op = test_.op->handle;
  const int count = static_cast<int>(test_.count);
  const std::vector<int> counts(counts_.begin(), counts_.end());
  switch (test_.collective) {
    case Collective::reduce:
      return MPI_Reduce(from, to, count, type, op, root_, party_.comm);
    case Collective::allreduce:
      return MPI_Allreduce(from, to, count, type, op, party_.comm);
    case Collective::reduce_scatter_block:
      return MPI_Reduce_scatter_block(from, to, count, type, op, party_.comm);
    case Collective::reduce_scatter:
      return MPI_Reduce_scatter(from, to, counts.data(), type, op, party_.comm);
    default:
      return MPI_ERR_OTHER;
  }
}

int Trial::call_packed() {
  const std::size_t element = element_bytes();
  const int count = static_cast<int>(test_.count * element);
  std::vector<std::byte> from = packed_input();
  std::vector<std::byte> to(receive_.elements * element + 1);
  std::vector<int> counts, displacements = {0};
  for (const std::size_t elements : counts_) {
    counts.push_back(static_cast<int>(elements * element));
    displacements.push_back(displacements.back() + counts.back());
  }
  int code = MPI_ERR_OTHER;
  const auto call = [&](auto function, auto... last) {
    code = function(from.data(), count, MPI_BYTE, to.data(), count, MPI_BYTE, last...);
  };
  switch (test_.collective) {
    case Collective::bcast:
      if (is_root()) to = from;
      code = MPI_Bcast(to.data(), count, MPI_BYTE, root_, party_.comm);
      break;
    case Collective::allgather:
      call(MPI_Allgather, party_.comm);
      break;
    case Collective::gather:
      call(MPI_Gather, root_, party_.comm);
      break;
    case Collective::scatter:
      call(MPI_Scatter, root_, party_.comm);
      break;
    case Collective::alltoall:
      call(MPI_Alltoall, party_.comm);
      break;
    case Collective::allgatherv:
      code = MPI_Allgatherv(from.data(), counts[static_cast<std::size_t>(party_.rank)], MPI_BYTE, to.data(),
                            counts.data(), displacements.data(), MPI_BYTE, party_.comm);
      break;
    default:
      code = reduce_packed(from.data(), to.data());
      break;
  }
  if (receive_.layout) unpack_expected(to);
  return code;
}

void Trial::run(Road road, Form form) {
  const bool profiling_name = derive(test_.seed, 2) % 4 == 0;
  // A rank that is late now and then finds the others' data waiting, or still on its way.
  if (own_.one_in(48)) usleep(static_cast<useconds_t>(own_.below(400)));
  enable_plait(road == Road::plait, party_.own);
  on_host_ = road == Road::host;
  if (road == Road::host) {
    const MPI_Op op = test_.op != nullptr ? test_.op->handle : MPI_OP_NULL;
    const MPI_Op corrected = test_.op != nullptr ? test_.op->corrected : MPI_OP_NULL;
    if (host_copes(test_))
      host_code_ = call(expected_.get(), op, Form::blocking, profiling_name);
    else
      host_code_ =
          corrected != MPI_OP_NULL ? call(expected_.get(), corrected, Form::blocking, profiling_name) : call_packed();
    return;
  }
  call_plait(form, profiling_name);
  for (int i = 1; form == Form::blocking && i < test_.times; ++i) call_again(profiling_name);
}

void Trial::call_plait(Form form, bool profiling_name) {
  move_to_device();
  plait_code_ = call(result_.get(), test_.op != nullptr ? test_.op->handle : MPI_OP_NULL, form, profiling_name);
  plan_ = last_plan();
  channels_ = last_channels();
  if (form == Form::blocking) plans_.push_back(plan_);
}

void Trial::call_again(bool profiling_name) {
  bring_back();
  if (auto failure = this->failure(); failure && !earlier_failure_)
    earlier_failure_ = *failure + " (call " + std::to_string(plans_.size()) + ", by \"" + plan_ + "\")";
  if (result_ != nullptr) std::ranges::copy(before_, result_->all().begin());
  call_plait(Form::blocking, profiling_name);
}

void Trial::finish() {
  if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);  // a persistent one
  bring_back();
  if (input_ && checksum(input_->all()) != input_sum_) input_kept_ = false;
}

std::size_t Trial::payload() const {
  if (test_.collective == Collective::barrier) return 0;
  const bool lists = test_.collective == Collective::allgatherv || test_.collective == Collective::reduce_scatter;
  const std::size_t elements = lists ? std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}) : test_.count;
  return elements * element_bytes();
}

// ---- Judging ----

bool Trial::must_be_accelerated() const {
  if (party_.ranks < 2) return false;
  if (test_.collective == Collective::barrier) return true;
  if (test_.op != nullptr && !test_.op->required) return false;
  return std::any_of(counts_.begin(), counts_.end(), [](std::size_t count) { return count > 0; });
}

// MPICH moves a long double as a value from some lengths on: what is received keeps the padding that stood there.
#ifdef MPICH_VERSION
constexpr bool host_moves_padding = false;
#else
constexpr bool host_moves_padding = true;
#endif

// Whether the call defines this byte, or must leave it alone: not so for padding in a reduction's elements, or where
// the host does not move it, and for what MPI_IN_PLACE leaves behind the result of a reduce-scatter.
bool Trial::value_at(std::ptrdiff_t offset) const {
  const bool moves = test_.op == nullptr;
  if (moves && (host_moves_padding || test_.shape != Shape::plain || test_.basic->value_bytes.empty())) return true;
  if (offset < receive_.layout->true_lower_bound()) return true;
  const auto at = static_cast<std::size_t>(offset - receive_.layout->true_lower_bound());
  const std::size_t element = at / test_.basic->extent;
  if (element >= receive_.elements) return true;
  if (!moves && element >= defined_) return false;
  return test_.basic->value_bytes.empty() || test_.basic->value_bytes[at % test_.basic->extent];
}

std::string Trial::difference() const {
  const auto expected = expected_->all(), result = result_->all();
  if (std::memcmp(expected.data(), result.data(), expected.size()) == 0) return {};
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == result[i] || !value_at(expected_->offset(i))) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  const std::ptrdiff_t offset = expected_->offset(first);
  std::string text = std::to_string(wrong) + " bytes differ, first at byte " + std::to_string(offset) + " of " +
                     std::to_string(reach(receive_).last) + ": host " +
                     std::to_string(std::to_integer<int>(expected[first])) + ", plait " +
                     std::to_string(std::to_integer<int>(result[first]));
  return text + " (receive layout " + receive_.layout->name() + ")";
}

std::optional<std::string> Trial::failure() const {
  if (earlier_failure_) return earlier_failure_;
  if (host_code_ != plait_code_)
    return "host returned " + std::to_string(host_code_) + ", plait " + std::to_string(plait_code_);
  if (!input_kept_) return "the send buffer was changed";
  if (expected_ == nullptr) return std::nullopt;
  std::string text = difference();
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace plait::test
