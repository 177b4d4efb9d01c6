#include "plugin/mpi/request/reshard.h"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <utility>

#include "core/attempt.h"
#include "core/immortal.h"
#include "core/intern.h"
#include "core/text_hash.h"
#include "plan/lower/proof.h"
#include "plan/reshard/lowering.h"
#include "plan/reshard/report.h"
#include "plugin/mpi/host/errors.h"
#include "plugin/mpi/host/host.h"
#include "plugin/mpi/host/progress.h"
#include "plugin/mpi/oob/connect.h"
#include "plugin/mpi/oob/mpi_oob.h"
#include "plugin/mpi/request/nonblocking.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/types/contiguity.h"
#include "plugin/mpi/types/layout.h"
#include "plugin/mpi/types/predefined_types.h"
#include "runtime/execution/caller.h"
#include "runtime/execution/device_data.h"
#include "runtime/execution/execution.h"
#include "runtime/job/job.h"
#include "tl/trace.h"

namespace plait::plugin {
namespace {

// All that are alive, in the order in which they were made.
struct Reshardings {
  std::mutex guard;
  std::vector<Resharding*> all;
};
Reshardings& reshardings() {
  static Immortal<Reshardings> made;  // never destroyed: plans may be freed until the process ends
  return *made;
}

Status bad(const char* argument, const std::string& what) {
  return {Code::invalid, std::string(argument) + ": " + what};
}

// ---- Arguments

struct MeshNames {
  const char *mesh, *spec;
};

Status read_mesh(const MeshArguments& given, const MeshNames& names, reshard::Mesh& mesh, reshard::ShardingSpec& spec) {
  if (given.dims == nullptr) return bad(names.mesh, "no dimensions are given");
  if (given.ndims < 1 || given.ndims > reshard::most_dimensions)
    return bad(names.mesh,
               std::to_string(given.ndims) + " dimensions: expected 1 to " + std::to_string(reshard::most_dimensions));
  std::int64_t ranks = 1;
  for (int d = 0; d < given.ndims; ++d) {
    if (given.dims[d] < 1) return bad(names.mesh, "dimension " + std::to_string(given.dims[d]) + " is not positive");
    ranks *= given.dims[d];
    if (ranks > reshard::most_mesh_ranks)
      return bad(names.mesh, "more than " + std::to_string(reshard::most_mesh_ranks) + " ranks");
  }
  mesh = reshard::consecutive_mesh({given.dims, given.dims + given.ndims}, 0);
  if (given.ranks != nullptr) mesh.ranks.assign(given.ranks, given.ranks + ranks);
  if (given.spec == nullptr) return bad(names.spec, "none is given");
  Result<reshard::ShardingSpec> parsed = reshard::parse_spec(given.spec, names.spec);
  if (!parsed.ok()) return parsed.status();
  spec = std::move(*parsed);
  return {};
}

Status read_element(MPI_Datatype element, std::size_t& bytes) {
  if (element == MPI_DATATYPE_NULL) return bad("element", "MPI_DATATYPE_NULL");
  int size = 0;
  if (PMPI_Type_size(element, &size) != MPI_SUCCESS || size <= 0) return bad("element", "has no bytes");
  MPI_Aint lower = 0, extent = 0;
  PMPI_Type_get_extent(element, &lower, &extent);
  if (lower != 0 || extent != size || !is_contiguous(element)) return bad("element", "is not contiguous");
  bytes = static_cast<std::size_t>(size);
  return {};
}

Status read_task(const ReshardArguments& given, int ranks, reshard::Task& task) {
  if (Status status = read_mesh(given.source, {"src_mesh", "src_spec"}, task.source, task.source_spec); !status.ok())
    return status;
  if (Status status = read_mesh(given.destination, {"dst_mesh", "dst_spec"}, task.destination, task.destination_spec);
      !status.ok())
    return status;
  if (given.ndims < 1 || given.ndims > reshard::most_dimensions)
    return bad("shape",
               std::to_string(given.ndims) + " dimensions: expected 1 to " + std::to_string(reshard::most_dimensions));
  if (given.shape == nullptr) return bad("shape", "none is given");
  task.shape.assign(given.shape, given.shape + given.ndims);
  if (Status status = read_element(given.element, task.element_bytes); !status.ok()) return status;
  return reshard::check(task, ranks);
}

Status read_number(const std::string& word, const std::string& value, std::uint64_t most, std::uint64_t& number) {
  const bool digits = !value.empty() && value.size() < 19 &&
                      std::ranges::all_of(value, [](char letter) { return letter >= '0' && letter <= '9'; });
  if (digits) number = std::stoull(value);
  if (!digits || number > most)
    return bad("options", "\"" + word + "\": expected a number up to " + std::to_string(most));
  return {};
}

Status read_option(const std::string& word, reshard::Options& options) {
  constexpr std::uint64_t most_chunks = 4096, most_seed = 999'999'999'999'999'999;
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
  std::uint64_t number = 0;
  if (key == "strategy") {
    const Result<reshard::Strategy> strategy = reshard::strategy_named(value);
    if (!strategy.ok()) return bad("options", strategy.status().message());
    options.strategy = *strategy;
  } else if (key == "scheduler") {
    const Result<reshard::Scheduler> scheduler = reshard::scheduler_named(value);
    if (!scheduler.ok()) return bad("options", scheduler.status().message());
    options.scheduler = *scheduler;
  } else if (key == "seed") {
    if (Status status = read_number(word, value, most_seed, number); !status.ok()) return status;
    options.budget.seed = number;
  } else if (key == "chunks") {
    if (Status status = read_number(word, value, most_chunks, number); !status.ok()) return status;
    options.chunks = static_cast<int>(number);
  } else {
    return bad("options", "\"" + word + "\": expected strategy=, scheduler=, seed= or chunks=");
  }
  return {};
}

// ---- Agreement

// What a rank says of an argument, or of what it has found, that all must say alike.
struct Said {
  const char* subject;
  std::string text;
};

std::string list_text(const auto& values) {
  std::string text;
  for (const auto value : values) text += std::to_string(value) + " ";
  return text;
}

std::vector<Said> arguments_said(const reshard::Task& task, const reshard::Options& options) {
  return {{"src_mesh", list_text(task.source.dims) + "/" + list_text(task.source.ranks)},
          {"src_spec", reshard::text(task.source_spec)},
          {"dst_mesh", list_text(task.destination.dims) + "/" + list_text(task.destination.ranks)},
          {"dst_spec", reshard::text(task.destination_spec)},
          {"shape", list_text(task.shape)},
          {"element", std::to_string(task.element_bytes)},
          {"options", std::string(name(options.strategy)) + std::string(name(options.scheduler)) +
                          std::to_string(options.budget.seed) + "." + std::to_string(options.chunks)}};
}

std::string signature(const reshard::HostSchedule& schedule) {
  return list_text(schedule.sender) + "/" + list_text(schedule.order);
}

// What the one rank that tells says, on all ranks.
std::string told_to_all(Oob& oob, bool tells, const std::string& text) {
  std::array<unsigned char, 200> own{}, all{};  // room is left for the rank
  if (tells) std::copy_n(text.begin(), std::min(text.size(), own.size() - 1), own.begin());
  if (!reduce_all(oob, own, all, Op::max, "tell what is wrong").ok())
    return "arguments: those of another rank cannot be used";
  return reinterpret_cast<const char*>(all.data());
}

// Ok on all ranks or on none: where all are well and say the same. Who is well learns what another complains of.
Status agree(Oob& oob, int rank, int ranks, const Status& mine, const std::vector<Said>& said) {
  std::vector<std::int64_t> own = {mine.ok() ? ranks : rank};
  for (const Said& one : said) {
    const auto print = static_cast<std::int64_t>(hash_text(one.text) >> 1);
    own.insert(own.end(), {print, -print});
  }
  std::vector<std::int64_t> lowest(own.size());
  const Status met =
      oob.reduce_all(own.data(), lowest.data(), own.size(), Element::i64, Op::min, "agree on a resharding");
  // From here on all ranks come to the same end.
  return attempt([&]() -> Status {
    if (!met.ok()) return met;
    if (lowest.front() < ranks) {
      const std::string complaint = told_to_all(oob, lowest.front() == rank, mine.message());
      return mine.ok() ? Status(Code::invalid, complaint + " (on rank " + std::to_string(lowest.front()) + ")") : mine;
    }
    for (std::size_t i = 0; i < said.size(); ++i)
      if (lowest[2 * i + 1] != -lowest[2 * i + 2]) return bad(said[i].subject, "the ranks do not give the same");
    return {};
  });
}

// The same, where this rank has the memory to say something; else it is well on none.
template <class Say>
Status agree_if_possible(Oob& oob, int rank, int ranks, const Status& mine, Say&& say) noexcept {
  try {
    return agree(oob, rank, ranks, mine, say());
  } catch (const std::exception& exception) {
    oob.withdraw();
    return status_of(exception);
  }
}

// Ranks of the communicator that take part, ascending.
std::vector<int> members_of(const reshard::Task& task) {
  std::vector<int> members = task.source.ranks;
  members.insert(members.end(), task.destination.ranks.begin(), task.destination.ranks.end());
  std::ranges::sort(members);
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

void renumber(reshard::Mesh& mesh, const std::vector<int>& members) {
  for (int& rank : mesh.ranks) rank = static_cast<int>(std::ranges::lower_bound(members, rank) - members.begin());
}

// A request that is complete: of a rank that has nothing to do, or has done it.
int complete_at_once(MPI_Request* request) {
  return PMPI_Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, quiet_communicator(), request);
}

}  // namespace

Result<reshard::Options> parse_reshard_options(const std::string& text) {
  reshard::Options options;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" ,", at), text.size());
    if (end > at)
      if (Status status = read_option(text.substr(at, end - at), options); !status.ok()) return status;
    at = end + 1;
  }
  return options;
}

Result<std::unique_ptr<Resharding>> Resharding::make(MPI_Comm comm, const ReshardArguments& arguments) {
  try {
    return make_together(comm, arguments);
  } catch (const std::exception& exception) {  // before a step that the others take
    MpiOob::of_program(comm).withdraw();
    return status_of(exception);
  }
}

Result<std::unique_ptr<Resharding>> Resharding::make_together(MPI_Comm comm, const ReshardArguments& arguments) {
  MpiOob oob = MpiOob::of_program(comm);
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  std::unique_ptr<Resharding> made(new Resharding);
  made->comm_ = comm;
  Status status = attempt([&]() -> Status {
    Result<reshard::Options> options = parse_reshard_options(arguments.options != nullptr ? arguments.options : "");
    if (!options.ok()) return options.status();
    if (!arguments.wants_plan) return bad("plan", "NULL");
    made->options_ = *options;
    return read_task(arguments, ranks, made->task_);
  });
  status = agree_if_possible(oob, rank, ranks, status, [&] { return arguments_said(made->task_, made->options_); });
  if (!status.ok()) return status;
  status = attempt([&] { return made->connect(rank); });
  // Those that take part must find the same plan; the others have none.
  if (made->communicator_ != nullptr) {
    std::string found;
    if (status.ok()) status = attempt([&] { return made->plan(found); });
    const MpiCommunicator& own = *made->communicator_;
    status = agree_if_possible(*made->members_, own.rank, own.ranks, status, [&] {
      return std::vector<Said>{{"plan", found}};
    });
  }
  if (status.ok())
    status = attempt([&]() -> Status {
      const std::scoped_lock lock(reshardings().guard);
      reshardings().all.push_back(made.get());  // its end takes it out again
      return {};
    });
  const std::array<std::int64_t, 1> good = {status.ok() ? 1 : 0};
  std::array<std::int64_t, 1> all_good = {0};
  const Status met = reduce_all(oob, good, all_good, Op::min, "prepare the resharding");
  if (!met.ok()) return met;
  if (all_good[0] == 0 && status.ok())
    return attempt([] { return Status(Code::unavailable, "another rank could not prepare the resharding"); });
  if (!status.ok()) return status;
  return made;
}

// Collective over the program's communicator. Afterwards ranks are those of the members' communicator.
Status Resharding::connect(int rank) {
  bool takes_part = false;
  std::vector<int> members;
  const Status ready = attempt([&]() -> Status {
    members_ = std::make_unique<MpiOob>(MPI_COMM_NULL);
    members = members_of(task_);
    source_box_ = reshard::shard_of(task_.source, task_.source_spec, task_.shape, rank);
    destination_box_ = reshard::shard_of(task_.destination, task_.destination_spec, task_.shape, rank);
    takes_part = std::ranges::binary_search(members, rank);
    return {};
  });
  if (Status status = MpiOob::of_program(comm_).go_on_together(ready); !status.ok()) return status;
  MPI_Comm handle = MPI_COMM_NULL;
  if (host().comm_split(comm_, takes_part ? 0 : MPI_UNDEFINED, rank, &handle) != MPI_SUCCESS)
    return {Code::unavailable, "no communicator of the meshes could be made"};
  if (!takes_part) return {};
  members_->take(handle);
  PMPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  renumber(task_.source, members);
  renumber(task_.destination, members);
  const Status known = attempt([&]() -> Status {
    communicator_ = std::make_unique<MpiCommunicator>(handle);
    return {};
  });
  if (Status status = members_->go_on_together(known); !status.ok()) {
    communicator_.reset();
    return status;
  }
  if (communicator_->ranks == 1) return {};
  Result<std::unique_ptr<Team>> made = communicator_->connect(TeamExtent::all_calls, nullptr);
  if (!made.ok()) return made.status();
  communicator_->team = std::move(*made);
  communicator_->road = Road::accelerated;
  return {};
}

Status Resharding::plan(std::string& found) {
  const bool alone = communicator_->team == nullptr;
  const int ranks = communicator_->ranks, rank = communicator_->rank;
  std::vector<int> host_of(static_cast<std::size_t>(ranks));
  Routes routes;
  options_.links = reshard::links_of(default_machine());
  if (!alone) {
    const Team& team = *communicator_->team;
    for (int r = 0; r < ranks; ++r) host_of[static_cast<std::size_t>(r)] = team.planner.hierarchy().node_of(r);
    routes = team.routes();
    options_.links = reshard::links_of(team.planner.machine());
  }
  const Result<reshard::Plan> planned = reshard::make_plan(task_, host_of, options_);
  if (!planned.ok()) return planned.status();
  const Result<LoweredPlan> lowered = reshard::lower(*planned, host_of, std::move(routes));
  if (!lowered.ok()) return lowered.status();
  if (Status proven = prove(lowered->semantics, lowered->schedules, true); !proven.ok()) return proven;
  const BlockPlaces places = reshard::places_of(task_, *planned, lowered->semantics, rank);
  prepared_ = std::make_shared<PreparedCall>();
  prepared_->accelerated = true;
  bind(lowered->schedules[static_cast<std::size_t>(rank)], lowered->semantics, rank,
       {.element_bytes = task_.element_bytes, .places = &places}, prepared_->schedule);
  prepared_->plan =
      intern("reshard " + std::string(name(options_.strategy)) + " " + std::string(name(options_.scheduler)));
  prepared_->channels = intern(names(prepared_->schedule.channels_used));
  for (const reshard::UnitTask& task : planned->unit.tasks) prepared_->payload += task.bytes;
  calls_host_ = prepared_->schedule.channels_used.any(&ChannelTraits::needs_host);
  (alone ? alone_ : communicator_->team->engine).make_room(prepared_->schedule);
  if (prepared_->schedule.scratch_bytes > 0) scratch_ = memory_.reserve(prepared_->schedule.scratch_bytes);
  description_ = reshard::summary_json(*planned);
  found = signature(planned->schedule) + description_;
  return {};
}

Resharding::~Resharding() {
  {
    const std::scoped_lock lock(reshardings().guard);
    std::erase(reshardings().all, this);
  }
  if (communicator_ != nullptr && communicator_->team != nullptr) own_progress().retire(*communicator_);
}

// Memory that the processor must not touch is copied to `memory` and back.
Staging Resharding::lay_out_sides(Request& request, WorkMemory& memory, const void* source, void* destination) const {
  Staging staging;
  staging.buffers.base = {static_cast<std::byte*>(const_cast<void*>(source)), static_cast<std::byte*>(destination),
                          scratch_};
  const auto describe = [&](Region& region, std::byte* address, const reshard::Box& box) {
    const auto bytes = static_cast<std::size_t>(box.elements()) * task_.element_bytes;
    region = {.address = address, .count = bytes, .type = find_predefined(MPI_BYTE), .bytes = bytes, .direct = true};
    if (bytes > 0) region.device = device_under(address, *region.type);
  };
  describe(request.input, staging.buffers.base[0], source_box_);
  describe(request.output, staging.buffers.base[1], destination_box_);
  const bool staged = request.input.staged() || request.output.staged();
  return staged ? lay_out(request, prepared_->schedule, memory) : staging;
}

// One rank has both sides: there is nobody to connect with, so no team, and nobody to wait for. Its copies run in an
// engine of the plan's own.
int Resharding::run_alone(const void* source, void* destination) {
  Request request;
  Execution execution{.schedule = &prepared_->schedule,
                      .staging = lay_out_sides(request, device_memory_, source, destination)};
  if (!pack(request, execution)) return raise_error(comm_, execution.error);
  static_cast<void>(alone_.run(*execution.schedule, execution.staging.buffers, nullptr, nullptr));
  const int error = finish(request, execution);
  return error == MPI_SUCCESS ? error : raise_error(comm_, error);
}

// The other ranks are told.
int Resharding::fail(const Status& cause, int error) {
  communicator_->error = error;
  communicator_->road = Road::broken;
  communicator_->team->give_up(cause);
  return raise_error(comm_, error);
}

int Resharding::execute(const void* source, void* destination) {
  if (communicator_ == nullptr) return MPI_SUCCESS;
  note_call({.plan = prepared_->plan, .channels = prepared_->channels});
  if (communicator_->team == nullptr) return run_alone(source, destination);
  own_progress().drain(*communicator_);
  if (communicator_->road == Road::broken) return raise_error(comm_, communicator_->error);
  Team& team = *communicator_->team;
  const std::uint64_t begin_ns = team.trace != nullptr ? monotonic_ns() : 0;
  Request request;
  Execution execution{.schedule = &prepared_->schedule,
                      .staging = lay_out_sides(request, device_memory_, source, destination)};
  if (!pack(request, execution)) return fail(pack_error(execution.error), execution.error);
  if (const Status status = run(team, request, execution); !status.ok()) {
    const Status reason = team.reason_of(status);
    return fail(reason, error_code(reason));
  }
  if (const int error = finish(request, execution); error != MPI_SUCCESS) return raise_error(comm_, error);
  if (begin_ns != 0)
    team.trace->add({begin_ns, monotonic_ns(), prepared_->payload, prepared_->plan, Collective::reshard});
  return MPI_SUCCESS;
}

int Resharding::start(const void* source, void* destination, MPI_Request* request) {
  if (communicator_ == nullptr) return complete_at_once(request);
  if (communicator_->team == nullptr) {
    const int error = run_alone(source, destination);
    return error == MPI_SUCCESS ? complete_at_once(request) : error;
  }
  if (communicator_->road == Road::broken) return raise_error(comm_, communicator_->error);
  MpiOperation* operation = take_operation(*communicator_, Collective::reshard);
  if (const char* reason = why_host(*operation); reason != nullptr) {
    give_back(operation);
    return raise_error(comm_, Status(Code::unsupported, std::string("plait_reshard_start: ") + reason));
  }
  operation->prepared = prepared_;
  operation->execution.staging = lay_out_sides(operation->request, operation->memory, source, destination);
  operation->laid_out = true;
  operation->needs_host = calls_host_;
  if (communicator_->team->trace != nullptr) operation->begin_ns = monotonic_ns();
  note_call({.plan = prepared_->plan, .channels = prepared_->channels});
  const int error = give_request(*operation, request);
  return error == MPI_SUCCESS ? error : raise_error(comm_, error);
}

void finish_reshardings() {
  std::vector<Resharding*> all;
  {
    const std::scoped_lock lock(reshardings().guard);
    all = reshardings().all;
  }
  for (Resharding* one : all) delete one;
}

}  // namespace plait::plugin
