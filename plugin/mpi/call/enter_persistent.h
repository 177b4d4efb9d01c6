// The way of every call that makes a persistent collective, from the program into Plait or to the host.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugin/mpi/call/arguments.h"
#include "plugin/lists/collective_functions.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/host_call.h"
#include "plugin/layer.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/request/persistent.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/request.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "tl/trace.h"

namespace plait::plugin {

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
MpiOperation* take_prepared(const Arguments& arguments, MpiCommunicator& communicator) noexcept {
  MpiOperation* operation = nullptr;
  try {
    operation = take_operation(communicator, Arguments::collective);
    operation->reason = arguments.prepare(communicator, operation->request);
    return operation;
  } catch (const std::exception&) {
    if (operation != nullptr) give_back(operation);
    return nullptr;
  }
}

// `on_host` is the same call on the host.
template <Collective collective, class OnHost, class... All>
int make_persistent(OnHost&& on_host, MPI_Request* request, All... all) {
  using Arguments = typename detail::ArgumentsIn<collective, AllArguments>::type;
  const std::tuple<All...> passed(all...);
  const MPI_Comm comm = std::get<sizeof...(All) - 1>(passed);
  const auto arguments =
      detail::without_communicator<Arguments>(passed, std::make_index_sequence<sizeof...(All) - 1>());
  const std::uint64_t begin_ns = reporting() ? monotonic_ns() : 0;
  const char* reason = nullptr;
  MpiCommunicator* communicator = nullptr;
  PersistentSpace* space = nullptr;
  try {
    communicator = request != nullptr ? serving(comm) : nullptr;
    space = communicator != nullptr ? persistent_space(*communicator, reason) : nullptr;
  } catch (const std::exception& exception) {
    return leave_call(comm, communicator, exception);
  }
  MpiOperation* operation = nullptr;
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

namespace plait::plugin::binding {

#define PLAIT_PARAMETERS(...) __VA_ARGS__
#define PLAIT_DECLARE(Name, name, parameters, arguments) \
  int name##_init(PLAIT_PARAMETERS parameters, MPI_Info info, MPI_Request* request);
PLAIT_COLLECTIVES(PLAIT_DECLARE)
#undef PLAIT_DECLARE

}  // namespace plait::plugin::binding
