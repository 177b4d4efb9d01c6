// An operation whose request the program holds as one of MPI's.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "plugin/layer.h"
#include "plugin/mpi/communicator/call_space.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/types/held_types.h"
#include "runtime/progress/operation.h"

namespace plait::plugin {

struct MpiOperation;

// Of a persistent collective; the operation is the same at all of its starts.
struct Persistence {
  enum class State : std::uint8_t { inactive, active, freed };  // freed: by the program, while it was active

  MPI_Request handle = MPI_REQUEST_NULL;  // what the program holds
  int tag = 0;                            // of the message that completes a persistent receive; 0: it is none
  std::atomic<State> state{State::inactive};
  // Completes what the program holds, once a start has come to its end.
  void (*conclude_start)(MpiOperation& operation) = nullptr;
};

struct MpiOperation final : Operation {
  void tell() noexcept override;

  CallSpace space_of_call;
  HeldTypes types;
  // What the program holds, unless it is persistent. A generalized request that the host never saw complete is kept
  // when the operation is used again.
  MPI_Request handle = MPI_REQUEST_NULL;
  void* binding_request = nullptr;  // the binding's own, always kept
  Persistence persistence;
  bool abandoned = false;  // the program freed the request before the end, and the host has let go of it at once
};

inline bool is_persistent(const MpiOperation& operation) { return operation.persistence.conclude_start != nullptr; }

// A request as a key: a pointer or an integer, by MPI.
inline std::uintptr_t key_of(MPI_Request request) { return (std::uintptr_t)request; }

// The runtime's operations are all of this kind here.
inline MpiOperation& mpi_of(Operation& operation) { return static_cast<MpiOperation&>(operation); }
inline const MpiOperation& mpi_of(const Operation& operation) { return static_cast<const MpiOperation&>(operation); }

inline MPI_Comm comm_of(const MpiOperation& operation) { return mpi_of(*operation.communicator).handle; }

// Operations are used again: their memory is never given back, but large work memory. Thread-safe.
MpiOperation* take_operation(Communicator& communicator, Collective collective);
void give_back(MpiOperation* operation);

// Those that nobody uses, which are the caller's from now on, linked by `next`.
MpiOperation* take_idle_operations();

}  // namespace plait::plugin
