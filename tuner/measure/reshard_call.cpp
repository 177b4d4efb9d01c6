#include "tuner/measure/reshard_call.h"

#include <dlfcn.h>

#include <cstring>
#include <new>

#include "plait/plait_mpi.h"

namespace plait::tuner {
namespace {

// Of the libplait.so in the process: a program without one has none.
struct Api {
  decltype(&plait_reshard_create) create;
  decltype(&plait_reshard_local) local;
  decltype(&plait_reshard_describe) describe;
  decltype(&plait_reshard_execute) execute;
  decltype(&plait_reshard_start) start;
  decltype(&plait_reshard_free) free;
};

template <class Function>
void look_up(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

const Api& api() {
  static const Api found = [] {
    Api made{};
    look_up("plait_reshard_create", made.create);
    look_up("plait_reshard_local", made.local);
    look_up("plait_reshard_describe", made.describe);
    look_up("plait_reshard_execute", made.execute);
    look_up("plait_reshard_start", made.start);
    look_up("plait_reshard_free", made.free);
    return made;
  }();
  return found;
}

struct Side {
  std::vector<std::int64_t> offset, length;
  std::vector<std::byte> data;

  std::size_t elements() const {
    std::size_t all = 1;
    for (const std::int64_t one : length) all *= static_cast<std::size_t>(one);
    return all;
  }
};

std::uint64_t value_of(std::int64_t number) { return static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u; }

// Calls visit(place in the buffer, number in the tensor) for every element, row by row.
template <class Visit>
void for_each_element(const Side& side, const std::vector<std::int64_t>& shape, Visit&& visit) {
  const std::size_t last = shape.size() - 1, elements = side.elements();
  const auto row = static_cast<std::size_t>(side.length[last]);
  for (std::size_t begin = 0; begin < elements; begin += row) {
    std::int64_t rest = static_cast<std::int64_t>(begin), number = 0, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      number += (side.offset[d] + rest % side.length[d]) * stride;
      rest /= side.length[d];
      stride *= shape[d];
    }
    for (std::size_t i = 0; i < row; ++i) visit(begin + i, number + static_cast<std::int64_t>(i));
  }
}

Status failure(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  text.resize(static_cast<std::size_t>(length));
  return {Code::invalid, text};
}

}  // namespace

struct ReshardCall::State {
  plait_reshard plan = PLAIT_RESHARD_NULL;
  ReshardSpec spec;
  Side source, destination;
};

ReshardCall::ReshardCall(std::unique_ptr<State> state) : state_(std::move(state)) {}
ReshardCall::ReshardCall(ReshardCall&&) noexcept = default;
ReshardCall::~ReshardCall() {
  if (state_ != nullptr && state_->plan != PLAIT_RESHARD_NULL) api().free(&state_->plan);
}

Result<ReshardCall> ReshardCall::make(const ReshardSpec& spec) {
  if (api().create == nullptr) return Status(Code::unavailable, "there is no libplait.so in this process");
  auto state = std::make_unique<State>();
  state->spec = spec;
  const std::size_t bytes = spec.element_bytes, dimensions = spec.shape.size();
  MPI_Datatype element = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &element);
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int code =
      api().create(MPI_COMM_WORLD, static_cast<int>(spec.source_dims.size()), spec.source_dims.data(),
                   spec.source_ranks.data(), spec.source_spec.c_str(), static_cast<int>(spec.destination_dims.size()),
                   spec.destination_dims.data(), spec.destination_ranks.data(), spec.destination_spec.c_str(),
                   static_cast<int>(dimensions), spec.shape.data(), element, spec.options.c_str(), &state->plan);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
  MPI_Errhandler_free(&before);
  MPI_Type_free(&element);
  if (code != MPI_SUCCESS) return failure(code);
  for (Side* side : {&state->source, &state->destination}) {
    side->offset.resize(dimensions);
    side->length.resize(dimensions);
    api().local(state->plan, side == &state->source ? PLAIT_RESHARD_SOURCE : PLAIT_RESHARD_DESTINATION,
                side->offset.data(), side->length.data());
    side->data.resize(side->elements() * bytes);
  }
  for_each_element(state->source, spec.shape, [&](std::size_t place, std::int64_t number) {
    const std::uint64_t value = value_of(number);
    std::memcpy(state->source.data.data() + place * bytes, reinterpret_cast<const std::byte*>(&value) + (8 - bytes),
                bytes);
  });
  return ReshardCall(std::move(state));
}

void ReshardCall::spoil() { std::memset(state_->destination.data.data(), 0xA5, state_->destination.data.size()); }

void ReshardCall::run() { api().execute(state_->plan, state_->source.data.data(), state_->destination.data.data()); }

void ReshardCall::run_by_request() {
  MPI_Request request = MPI_REQUEST_NULL;
  api().start(state_->plan, state_->source.data.data(), state_->destination.data.data(), &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

bool ReshardCall::right() const {
  bool same = true;
  const std::size_t bytes = state_->spec.element_bytes;
  for_each_element(state_->destination, state_->spec.shape, [&](std::size_t place, std::int64_t number) {
    const std::uint64_t value = value_of(number);
    same = same && std::memcmp(state_->destination.data.data() + place * bytes,
                               reinterpret_cast<const std::byte*>(&value) + (8 - bytes), bytes) == 0;
  });
  return same;
}

std::string ReshardCall::description() const { return api().describe(state_->plan); }

}  // namespace plait::tuner
