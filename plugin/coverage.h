// What becomes of each collective of MPI 3.1 in each binding: docs/coverage.md is written from these tables
// (coverage_table), and the tests conformance.coverage* hold them against what the bindings do. No MPI here.
//
// A collective that joins PLAIT_COLLECTIVES changes its row by that alone. A form that a binding learns is one line
// below.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "plan/choose/planner.h"
#include "plugin/collective_functions.h"
#include "plugin/layer.h"
#include "runtime/job/reasons.h"

namespace plait::plugin::coverage {

enum class Binding { preload_openmpi, preload_mpich, component };
inline constexpr std::array bindings = {Binding::preload_openmpi, Binding::preload_mpich, Binding::component};
inline constexpr std::array<std::string_view, 3> binding_names = {"`libplait.so`, Open MPI", "`libplait.so`, MPICH",
                                                                  "component of Open MPI"};

enum class CallForm { blocking, nonblocking, persistent };
inline constexpr std::array forms = {CallForm::blocking, CallForm::nonblocking, CallForm::persistent};

// Why a binding leaves a form of all collectives to the host; empty: it does not.
struct FormOfBinding {
  CallForm form;
  Binding binding;
  std::string_view host_because;
};
inline constexpr std::array form_table = {
    FormOfBinding{CallForm::blocking, Binding::preload_openmpi, ""},
    FormOfBinding{CallForm::blocking, Binding::preload_mpich, ""},
    FormOfBinding{CallForm::blocking, Binding::component, ""},
    FormOfBinding{CallForm::nonblocking, Binding::preload_openmpi, ""},
    FormOfBinding{CallForm::nonblocking, Binding::preload_mpich, ""},
    FormOfBinding{CallForm::nonblocking, Binding::component, ""},
    FormOfBinding{CallForm::persistent, Binding::preload_openmpi, ""},
    FormOfBinding{CallForm::persistent, Binding::preload_mpich, ""},
    FormOfBinding{CallForm::persistent, Binding::component, ""},
};
static_assert(form_table.size() == bindings.size() * forms.size());

// The collectives of MPI 3.1 in the order of its chapter 5, then those on neighbours (chapter 7).
inline constexpr std::array<std::string_view, 22> mpi_collectives = {"Barrier",
                                                                     "Bcast",
                                                                     "Gather",
                                                                     "Gatherv",
                                                                     "Scatter",
                                                                     "Scatterv",
                                                                     "Allgather",
                                                                     "Allgatherv",
                                                                     "Alltoall",
                                                                     "Alltoallv",
                                                                     "Alltoallw",
                                                                     "Reduce",
                                                                     "Allreduce",
                                                                     "Reduce_scatter",
                                                                     "Reduce_scatter_block",
                                                                     "Scan",
                                                                     "Exscan",
                                                                     "Neighbor_allgather",
                                                                     "Neighbor_allgatherv",
                                                                     "Neighbor_alltoall",
                                                                     "Neighbor_alltoallv",
                                                                     "Neighbor_alltoallw"};

// Those that the bindings take: both names, as MPI and as Collective have them.
struct Taken {
  std::string_view mpi_name, name;
};
inline constexpr std::array taken_collectives = {
#define PLAIT_TAKEN(Name, name, parameters, arguments) Taken{#Name, #name},
    PLAIT_COLLECTIVES(PLAIT_TAKEN)
#undef PLAIT_TAKEN
};

constexpr bool taken(std::string_view mpi_name) {
  for (const Taken& one : taken_collectives)
    if (one.mpi_name == mpi_name) return true;
  return false;
}

constexpr bool all_known() {
  for (const Taken& one : taken_collectives) {
    bool known = false;
    for (const std::string_view name : mpi_collectives) known = known || name == one.mpi_name;
    if (!known) return false;
  }
  return true;
}
static_assert(all_known());

// A collective that a binding takes in some forms only.
struct FormOfCollective {
  std::string_view mpi_name;
  CallForm form;
  Binding binding;
  std::string_view host_because;
};
inline constexpr std::array<FormOfCollective, 0> collective_table = {};

// Why the host has all calls of a collective's form in a binding; empty: it has not.
constexpr std::string_view host_because(std::string_view mpi_name, CallForm form, Binding binding) {
  if (!taken(mpi_name)) return "the bindings do not take it";
  for (const FormOfCollective& entry : collective_table)
    if (entry.mpi_name == mpi_name && entry.form == form && entry.binding == binding) return entry.host_because;
  for (const FormOfBinding& entry : form_table)
    if (entry.form == form && entry.binding == binding) return entry.host_because;
  return "unknown";
}

constexpr bool on_neighbours(std::string_view mpi_name) { return mpi_name.starts_with("Neighbor"); }

// ---- When a call of a form that is accelerated is the host's all the same

enum class Concerns {
  all,
  tried,
  data,
  reductions,
  scans,
  exchanges,
  nonblocking,
  persistent,
  later,
  later_reductions
};

constexpr bool reduces_data(std::string_view mpi_name) {
  for (const std::string_view name :
       {"Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan"})
    if (mpi_name == name) return true;
  return false;
}

constexpr bool of_pairs(std::string_view mpi_name) { return mpi_name == "Alltoallv" || mpi_name == "Alltoallw"; }

// Whether plans are made for it.
constexpr bool tried(std::string_view mpi_name) {
  for (const std::string_view name : {"Alltoallv", "Alltoallw", "Gatherv", "Scatterv", "Scan", "Exscan"})
    if (mpi_name == name) return false;
  return true;
}

constexpr bool concerned(Concerns concerns, std::string_view mpi_name, CallForm form) {
  switch (concerns) {
    case Concerns::all:
      return true;
    case Concerns::tried:
      return form == CallForm::blocking && tried(mpi_name);
    case Concerns::data:
      return mpi_name != "Barrier";
    case Concerns::reductions:
      return reduces_data(mpi_name);
    case Concerns::scans:
      return mpi_name == "Scan" || mpi_name == "Exscan";
    case Concerns::exchanges:
      return of_pairs(mpi_name);
    case Concerns::nonblocking:
      return form == CallForm::nonblocking;
    case Concerns::persistent:
      return form == CallForm::persistent;
    case Concerns::later:
      return form != CallForm::blocking;
    case Concerns::later_reductions:
      return form != CallForm::blocking && reduces_data(mpi_name);
  }
  return false;
}

struct Exception {
  std::string_view reason;  // as the report says it
  Concerns concerns;
  std::string_view why;
};
inline constexpr std::array exceptions = {
    Exception{reasons::inter_communicator, Concerns::all, "passes through, by MPI's own semantics of two groups"},
    Exception{reasons::one_rank, Concerns::all, "nothing to communicate"},
    Exception{reasons::several_jobs, Concerns::all,
              "communicators of more than one `MPI_COMM_WORLD` (spawned, connected): their jobs agreed on nothing"},
    Exception{reasons::not_set_up, Concerns::all, "the first calls on a communicator; `PLAIT_SETUP_CALLS`"},
    Exception{plan::reasons::host_is_faster, Concerns::all,
              "measured or known, by hierarchy and size; `PLAIT_HOST=0` never"},
    Exception{reasons::trial, Concerns::tried,
              "the first calls of a kind and size, in turn with plans; not with `PLAIT_TRIAL=0`"},
    Exception{plan::reasons::too_large, Concerns::all, "more than 256 ranks; nothing is set up for it"},
    Exception{plan::reasons::no_plan, Concerns::all, "channels or settings that leave no way"},
    Exception{reasons::wrong_argument, Concerns::all, "so that errors are the host's own"},
    Exception{reasons::no_data, Concerns::data, "a count of 0, or types of size 0"},
    Exception{reasons::derived_type, Concerns::reductions, "an error by MPI, which the host raises"},
    Exception{reasons::undefined_operator, Concerns::reductions, "as well"},
    Exception{reasons::long_element, Concerns::reductions, "slots and chunks hold many elements"},
    Exception{reasons::in_place_exchange, Concerns::exchanges, "all ranks know it"},
    Exception{reasons::long_prefix, Concerns::scans, "each rank gets all vectors and adds up those before it"},
    Exception{reasons::not_set_up_by_blocking, Concerns::nonblocking,
              "a set-up takes all ranks, which a call that must return cannot wait for; `PLAIT_SETUP_CALLS=0` makes it "
              "in time"},
    Exception{reasons::short_set_up, Concerns::nonblocking, "until the next blocking call"},
    Exception{reasons::no_progress_hook, Concerns::later,
              "MPICH over another network than UCX, or under `MPI_THREAD_MULTIPLE`"},
    Exception{reasons::user_operator_posted, Concerns::later_reductions,
              "a program may free its operator before the end"},
    Exception{reasons::too_short_to_order, Concerns::persistent,
              "less than 32 KiB between nodes; `PLAIT_HOST=0` takes them"},
    Exception{reasons::no_persistent_slot, Concerns::persistent, "4096 of a communicator at a time"},
};

}  // namespace plait::plugin::coverage
