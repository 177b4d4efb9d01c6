// A non-blocking collective that Plait has taken on, from its posting until the program has let go of its request.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "plan/overlap/overlap_plan.h"
#include "plugin/communicator.h"
#include "plugin/execution.h"
#include "plugin/held_types.h"
#include "plugin/layer.h"
#include "plugin/pair_exchange.h"
#include "plugin/request.h"
#include "runtime/job/work_memory.h"
#include "runtime/team/schedule_cache.h"

namespace plait::plugin {

class PersistentSpace;  // persistent_space.h

// Of a persistent collective; the operation is the same at all of its starts.
struct Persistence {
  enum class State : std::uint8_t { inactive, active, freed };  // freed: by the program, while it was active

  std::shared_ptr<PersistentSpace> space;  // nullptr: the operation is not persistent
  std::uint32_t slot = 0;                  // in its space, the same on all ranks
  MPI_Request handle = MPI_REQUEST_NULL;   // what the program holds
  int tag = 0;                             // of the message that completes a persistent receive; 0: it is none
  std::atomic<State> state{State::inactive};
};

struct FusedPlans;  // fused_plans.h

// Of an allreduce that groups may take, by the job's overlap plan or by one that is learned.
struct Membership {
  // From its posting.
  bool enlisted = false;
  bool all_done_before = false;  // RecordedCall::all_done_before
  std::uint64_t number = 0;      // of the communicator's calls that are enlisted, from 0 on
  std::uint64_t posted_ns = 0, computed_ns = 0;
  std::shared_ptr<FusedPlans> plans;  // nullptr: there was no plan yet
  // When the program last found a call of the communicator complete. Its own, as the communicator may be gone by then.
  std::shared_ptr<std::atomic<std::uint64_t>> found_ns;

  // From when the plan's place was looked for.
  bool assigned = false;
  bool alone = false;      // it runs by itself whatever comes: its group is only it, or lacks calls before it
  std::uint64_t unit = 0;  // operations of one unit may run as one; 0: the plan says nothing of it
  std::size_t group = 0;   // of the plan
  std::size_t left = 1;    // calls of the plan's group from this one on
  CommunicationShare share{.threads = 1, .duty = 0};  // of the helper threads meanwhile; a duty of 0: as always

  // From its turn.
  bool counted = false, entered = false;
  std::uint64_t begin_ns = 0;      // where it runs by itself
  const char* plan = nullptr;      // by which its group ran; interned
  const char* channels = nullptr;  // likewise

  // While its data, or its group's, is under way.
  void enter();
  void leave();
};

struct Operation {
  Communicator* communicator = nullptr;
  Request request;
  Lists lists;
  HeldTypes types;
  const char* reason = nullptr;  // why it is not eligible; nullptr: it is

  // What the program holds, unless it is persistent. A generalized request that the host never saw complete is kept
  // when the operation is used again.
  MPI_Request handle = MPI_REQUEST_NULL;
  void* binding_request = nullptr;  // the binding's own, always kept
  Persistence persistence;
  Membership membership;

  // Once it is clear that it runs here.
  std::shared_ptr<const PreparedCall> prepared;
  Execution execution;
  bool laid_out = false;                // its staging was made beforehand: of persistent operations and reshardings
  std::unique_ptr<PairExchange> pairs;  // made for the first call that needs it
  WorkMemory memory;
  bool running = false;
  bool failed = false;      // for OperationQueue::failure
  bool needs_host = false;  // some part of it calls MPI: only a thread that may do so moves it on

  bool abandoned = false;  // the program freed the request before the end, and the host has let go of it at once

  std::atomic<bool> complete{false};  // its request is about to be, or is

  std::uint64_t begin_ns = 0;  // of the call; 0: nobody measures
  int error = MPI_SUCCESS;
  Operation* next = nullptr;  // in the one list that it is in
};

// Operations are used again: their memory is never given back, but large work memory. Thread-safe.
Operation* take_operation(Communicator& communicator, Collective collective);
void give_back(Operation* operation);

// Those that nobody uses, which are the caller's from now on, linked by `next`.
Operation* take_idle_operations();

}  // namespace plait::plugin
