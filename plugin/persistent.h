// Persistent collectives (MPI 4.0, section 6.13; Open MPI 4.1 has them with the prefix MPIX_).
//
// Plan, types and memory are prepared once, where the request is made; a start only says that it was made
// (start_order.h). A generalized request cannot be persistent: the program is given the door's own request (Host), or a
// persistent receive (persistent_receive.h).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugin/arguments.h"
#include "plugin/communicator.h"
#include "plugin/host.h"
#include "plugin/operation.h"
#include "plugin/reasons.h"
#include "plugin/request.h"

namespace plait::plugin {

// Where the persistent collectives of a communicator run; nullptr: on the host, for `reason`. Collective and blocking
// at the first call.
PersistentSpace* persistent_space(Communicator& communicator, const char*& reason);

// For a rank that has no memory to take part in one that the others may make. Collective; blocks.
void decline_request(PersistentSpace& space);

// Makes the program's request for what was prepared. Collective; blocks. `operation.reason` says why the host must take
// the call, and becomes nullptr where it need not: then the result is MPI's error code. The operation is gone unless
// the host takes the call.
int make_request(Operation& operation, PersistentSpace& space, MPI_Request* request);

// Called by progress() when the operation has come to an end.
void conclude_start(Operation& operation);

// For doors with requests of their own, of which the program frees one. Thread-safe.
void request_freed(MPI_Request handle);

// Before MPI ends: forgets what the program has not freed.
void finish_persistent();

namespace detail {

// The arguments of a collective.
template <Collective wanted, class Tuple>
struct ArgumentsIn;
template <Collective wanted, class First, class... Others>
struct ArgumentsIn<wanted, std::tuple<First, Others...>>
    : std::conditional_t<First::collective == wanted, std::type_identity<First>,
                         ArgumentsIn<wanted, std::tuple<Others...>>> {};
template <Collective wanted>
struct ArgumentsIn<wanted, std::tuple<>> {};

// A function's arguments, of which the communicator comes last.
template <class Call, class Tuple, std::size_t... index>
Call without_communicator(const Tuple& all, std::index_sequence<index...>) {
  return Call{std::get<index>(all)...};
}

}  // namespace detail

// nullptr where memory is short.
template <class Arguments>
Operation* take_prepared(const Arguments& arguments, Communicator& communicator) noexcept {
  Operation* operation = nullptr;
  try {
    operation = take_operation(communicator, Arguments::collective);
    operation->reason = arguments.prepare(communicator, operation->request);
    return operation;
  } catch (const std::exception&) {
    if (operation != nullptr) give_back(operation);
    return nullptr;
  }
}

// The way of every call that makes a persistent collective. `on_host` is the same call on the host.
template <Collective collective, class OnHost, class... All>
int make_persistent(OnHost&& on_host, MPI_Request* request, All... all) {
  using Arguments = typename detail::ArgumentsIn<collective, AllArguments>::type;
  const std::tuple<All...> passed(all...);
  const MPI_Comm comm = std::get<sizeof...(All) - 1>(passed);
  const auto arguments =
      detail::without_communicator<Arguments>(passed, std::make_index_sequence<sizeof...(All) - 1>());
  const std::uint64_t begin_ns = reporting() ? monotonic_ns() : 0;
  const char* reason = nullptr;
  Communicator* communicator = nullptr;
  PersistentSpace* space = nullptr;
  try {
    communicator = request != nullptr ? serving(comm) : nullptr;
    space = communicator != nullptr ? persistent_space(*communicator, reason) : nullptr;
  } catch (const std::exception& exception) {
    return leave_call(comm, communicator, exception);
  }
  Operation* operation = nullptr;
  if (space != nullptr) {
    operation = take_prepared(arguments, *communicator);
    reason = reasons::no_persistent_memory;
    if (operation == nullptr) {
      decline_request(*space);
    } else {
      const int code = make_request(*operation, *space, request);
      if (operation->reason == nullptr) return code;
      reason = operation->reason;
    }
  }
  note_host_call();
  const int code = on_host();
  if (begin_ns != 0)
    count_host_call({.collective = collective,
                     .comm = comm,
                     .communicator = communicator,
                     .call = operation != nullptr ? &operation->request.call : nullptr,
                     .reason = reason,
                     .form = Form::persistent},
                    begin_ns);
  if (operation != nullptr) give_back(operation);
  return code;
}

}  // namespace plait::plugin

namespace plait::plugin::door {

#define PLAIT_PARAMETERS(...) __VA_ARGS__
#define PLAIT_DECLARE(Name, name, parameters, arguments) \
  int name##_init(PLAIT_PARAMETERS parameters, MPI_Info info, MPI_Request* request);
PLAIT_COLLECTIVES(PLAIT_DECLARE)
#undef PLAIT_DECLARE

// The program's other requests go to the host: a look into a table, where there are persistent collectives at all.
int start(MPI_Request* request);
int startall(int count, MPI_Request requests[]);
int request_free(MPI_Request* request);

}  // namespace plait::plugin::door
