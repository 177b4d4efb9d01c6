// Cross-mesh resharding for programs: what plait_reshard_create() makes. Plans are made by plan/reshard, proven, and
// run on connections of their own, so that a plan's messages never meet those of other calls.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "plan/reshard/plan.h"
#include "plugin/layer.h"
#include "plugin/mpi/communicator/communicator.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "runtime/execution/request.h"
#include "runtime/execution/staging.h"
#include "runtime/job/work_memory.h"
#include "runtime/team/schedule_cache.h"
#include "tl/engine.h"

namespace plait::plugin {

// One mesh as the program gives it.
struct MeshArguments {
  int ndims;
  const int* dims;
  const int* ranks;  // nullptr: 0, 1, ..
  const char* spec;
};

struct ReshardArguments {
  MeshArguments source, destination;
  int ndims;
  const std::int64_t* shape;
  MPI_Datatype element;
  const char* options;  // nullptr: none
  bool wants_plan;      // has a place for it
};

// What the options say: "strategy=broadcast scheduler=search seed=1 chunks=0", any of them, in any order.
Result<reshard::Options> parse_reshard_options(const std::string& text);

class Resharding {
 public:
  // Collective over `comm`; blocks. All ranks succeed or all fail; a rank without a complaint of its own has that of
  // the first one with one.
  static Result<std::unique_ptr<Resharding>> make(MPI_Comm comm, const ReshardArguments& arguments);
  ~Resharding();
  Resharding(const Resharding&) = delete;
  Resharding& operator=(const Resharding&) = delete;

  // Both return an MPI error code. Neither allocates, but for what the host's requests take.
  int execute(const void* source, void* destination);
  int start(const void* source, void* destination, MPI_Request* request);

  MPI_Comm comm() const { return comm_; }
  const reshard::Box& source_box() const { return source_box_; }
  const reshard::Box& destination_box() const { return destination_box_; }
  const std::string& description() const { return description_; }  // JSON
  std::size_t element_bytes() const { return task_.element_bytes; }
  const std::vector<std::int64_t>& shape() const { return task_.shape; }

 private:
  Resharding() = default;
  // Throws only before a step that all ranks take.
  static Result<std::unique_ptr<Resharding>> make_together(MPI_Comm comm, const ReshardArguments& arguments);
  Status connect(int rank);
  // `found`: what all members must have found.
  Status plan(std::string& found);
  int fail(const Status& cause, int error);
  int run_alone(const void* source, void* destination);
  Staging lay_out_sides(Request& request, WorkMemory& memory, const void* source, void* destination) const;

  MPI_Comm comm_ = MPI_COMM_NULL;  // the program's
  reshard::Task task_;
  reshard::Options options_;
  reshard::Box source_box_, destination_box_;
  std::string description_;
  std::unique_ptr<MpiOob> members_;                // the ranks of both meshes; none elsewhere
  std::unique_ptr<MpiCommunicator> communicator_;  // over them; nullptr: this rank has no part
  std::shared_ptr<PreparedCall> prepared_;
  WorkMemory memory_, device_memory_;  // the latter for copies of data in memory of a device
  std::byte* scratch_ = nullptr;
  Engine alone_{{}, {}};  // of the one rank that has both sides
  bool calls_host_ = false;
};

// Before the host's MPI_Finalize, on all ranks: takes down the connections of plans that the program has not freed.
void finish_reshardings();

}  // namespace plait::plugin
