#include "plugin/ompi/bridge.h"

#include <dlfcn.h>

#include <atomic>
#include <exception>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/log.h"
#include "plugin/layer.h"
#include "plugin/mpi/call/arguments.h"
#include "plugin/mpi/call/collectives.h"
#include "plugin/mpi/call/enter.h"
#include "plugin/mpi/call/lifecycle.h"
#include "plugin/mpi/call/on_host.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/request/persistent.h"
#include "runtime/call/blocking.h"
#include "runtime/execution/request.h"
#include "runtime/fusion/fusion.h"
#include "runtime/job/job.h"
#include "runtime/recorder/recorder.h"
#include "tl/trace.h"

namespace plait::plugin::ompi {
namespace {

struct Variable {
  std::string name, help, initial;
};

// "single_copy" of "PLAIT_SINGLE_COPY".
std::string parameter_name(std::string_view knob) {
  knob.remove_prefix(knob.find('_') + 1);
  std::string name(knob);
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

// Never destroyed: Open MPI may ask until the process ends.
const std::vector<Variable>& variables() {
  static const auto* list = [] {
    auto* made = new std::vector<Variable>;
    for (const Knob& knob : knobs())
      made->push_back({.name = parameter_name(knob.name),
                       .help = std::string(knob.help) + " (" + std::string(knob.type) + "; as " +
                               std::string(knob.name) + " in the environment)",
                       .initial = initial_text(knob)});
    return made;
  }();
  return *list;
}

// Start of the library that an address lies in; nullptr: none.
const void* library_of(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 ? found.dli_fbase : nullptr;
}

// A module's communicator is always the same one; whether its state still stands, the generation tells.
MpiCommunicator* serving_slowly(plait_ompi_state& state, MPI_Comm comm) {
  const std::uint64_t generation = detail::communicator_generation.load(std::memory_order_acquire);
  MpiCommunicator* communicator = plait::plugin::serving(comm);
  if (communicator == nullptr) return nullptr;
  std::atomic_ref(state.communicator).store(communicator, std::memory_order_relaxed);
  std::atomic_ref(state.generation).store(generation, std::memory_order_release);
  return communicator;
}

inline MpiCommunicator* serving(plait_ompi_state& state, MPI_Comm comm) {
  const bool known = std::atomic_ref(state.generation).load(std::memory_order_acquire) ==
                     detail::communicator_generation.load(std::memory_order_acquire);
  if (!known || !accepting()) [[unlikely]]
    return serving_slowly(state, comm);
  return static_cast<MpiCommunicator*>(std::atomic_ref(state.communicator).load(std::memory_order_relaxed));
}

int start_request(MpiOperation& operation) {
  return plait_ompi_start_request(&operation, comm_of(operation), &operation.binding_request, &operation.handle);
}

void complete_request(MpiOperation& operation) { plait_ompi_complete_request(operation.handle, operation.error); }

int make_persistent_request(MpiOperation& operation) {
  return plait_ompi_make_persistent(comm_of(operation), &operation.persistence.handle);
}

void install_host_functions() {
  Host host;
  host.init = PMPI_Init;
  host.init_thread = PMPI_Init_thread;
  host.finalize = PMPI_Finalize;
  host.alloc_mem = PMPI_Alloc_mem;
  host.free_mem = PMPI_Free_mem;
#define PLAIT_INSTALL(Name, name, parameters, arguments) \
  host.name = plait_ompi_host_##name;                    \
  host.i##name = plait_ompi_host_i##name;                \
  host.name##_init = plait_ompi_host_##name##_init;
  PLAIT_COLLECTIVES(PLAIT_INSTALL)
#undef PLAIT_INSTALL
#define PLAIT_INSTALL(Name, name, parameters, arguments) host.name = PMPI_##Name;
  PLAIT_COMMUNICATORS(PLAIT_INSTALL)
#undef PLAIT_INSTALL
  host.wait = PMPI_Wait;
  host.start_request = start_request;
  host.complete_request = complete_request;
  host.make_persistent_request = make_persistent_request;
  host.complete_persistent_request = plait_ompi_complete_persistent;
  host.raises_errors = true;
  install_host(host);
}

}  // namespace
}  // namespace plait::plugin::ompi

extern "C" {

// Open MPI leaves a component alone that has none.
size_t plait_ompi_variable_count(void) {
  try {
    return plait::plugin::ompi::variables().size();
  } catch (const std::exception&) {
    return 0;
  }
}

plait_ompi_variable plait_ompi_variable_at(size_t index) {
  const plait::plugin::ompi::Variable& variable = plait::plugin::ompi::variables()[index];
  return {variable.name.c_str(), variable.help.c_str(), variable.initial.c_str()};
}

bool plait_ompi_preloaded(void) {
  const void* other = dlsym(RTLD_DEFAULT, "plait_version");
  return other != nullptr && plait::plugin::ompi::library_of(other) !=
                                 plait::plugin::ompi::library_of(reinterpret_cast<const void*>(&plait_ompi_preloaded));
}

void plait_ompi_warn(const char* text) { plait::warn(text); }

void plait_ompi_begin(const char* const values[], size_t count) {
  plait::plugin::ompi::install_host_functions();
  try {
    std::vector<std::string> settings;
    for (size_t i = 0; i < count; ++i)
      settings.push_back(std::string(plait::knobs()[i].name) + "=" + (values[i] != nullptr ? values[i] : ""));
    plait::plugin::prefer_settings(std::move(settings));
  } catch (const std::exception&) {  // where that makes a difference, the ranks will see that their settings differ
  }
  plait::plugin::begin_initialisation();
}

void plait_ompi_open(void) {
  plait::plugin::end_initialisation(true);
  if (plait::plugin::phase() != plait::plugin::Phase::open) return;
  if (plait::plugin::job().first_rank && plait::plugin::job().config.shared == "malloc")
    plait::warn("PLAIT_SHARED=malloc needs libplait.so to be preloaded; the program's memory stays private");
}

void plait_ompi_finish(void) { plait::plugin::finish(); }

void plait_ompi_found_complete(const void* operation) {
  const auto& found = *static_cast<const plait::plugin::MpiOperation*>(operation);
  plait::plugin::Fusion::note_found_complete(found);
  // The component sees no waits: the computation before includes them.
  if (plait::runtime::Recorder* recorder = plait::runtime::recorder(); recorder != nullptr) {
    const std::uint64_t now_ns = plait::tl::monotonic_ns();
    recorder->add_wait(plait::plugin::key_of(found.handle), {now_ns, now_ns});
  }
}

void plait_ompi_release_operation(void* operation) {
  plait::plugin::give_back(static_cast<plait::plugin::MpiOperation*>(operation));
}

int plait_ompi_start(MPI_Request request) { return plait::plugin::binding::start(&request); }

void plait_ompi_persistent_freed(MPI_Request request) { plait::plugin::request_freed(request); }

#define PLAIT_DEFINE_BINDING(Name, name, parameters, arguments)                                      \
  int plait_ompi_binding_##name(PLAIT_LIST parameters, plait_ompi_state* state) {                    \
    plait::plugin::MpiCommunicator* communicator = nullptr;                                          \
    try {                                                                                            \
      communicator = plait::plugin::ompi::serving(*state, comm);                                     \
    } catch (const std::exception& exception) {                                                      \
      return plait::plugin::leave_call(comm, nullptr, exception);                                    \
    }                                                                                                \
    const auto on_host = [&](MPI_Comm) {                                                             \
      const auto replace = [&](plait::plugin::HostCopies& copies) {                                  \
        plait::plugin::host_copies::name(copies, PLAIT_LIST arguments);                              \
      };                                                                                             \
      const auto call = [&] { return plait::plugin::host().name arguments; };                        \
      return plait::plugin::call_on_host(comm, replace, call);                                       \
    };                                                                                               \
    return plait::plugin::enter(PLAIT_CALL(name, arguments, on_host), comm, communicator);           \
  }                                                                                                  \
  int plait_ompi_binding_i##name(PLAIT_LIST parameters, MPI_Request* request) {                      \
    return plait::plugin::binding::i##name(PLAIT_LIST arguments, request);                           \
  }                                                                                                  \
  int plait_ompi_binding_##name##_init(PLAIT_LIST parameters, MPI_Info info, MPI_Request* request) { \
    return plait::plugin::binding::name##_init(PLAIT_LIST arguments, info, request);                 \
  }
PLAIT_COLLECTIVES(PLAIT_DEFINE_BINDING)
#undef PLAIT_DEFINE_BINDING

}  // extern "C"
