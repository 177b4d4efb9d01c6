#include "plugin/mpi/call/record_call.h"

#include <cerrno>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/immortal.h"
#include "core/intern.h"
#include "core/log.h"
#include "core/reduction.h"
#include "plugin/mpi/request/operation.h"
#include "plugin/mpi/types/datatype.h"
#include "runtime/job/job.h"

namespace plait::plugin {
namespace {

thread_local constinit const void* told_site = nullptr;

std::vector<int> world_ranks_of(MPI_Comm comm) {
  MPI_Group members = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  int size = 0;
  PMPI_Comm_group(comm, &members);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_size(members, &size);
  std::vector<int> own(static_cast<std::size_t>(size)), translated(own.size(), MPI_UNDEFINED);
  for (int rank = 0; rank < size; ++rank) own[static_cast<std::size_t>(rank)] = rank;
  PMPI_Group_translate_ranks(members, size, own.data(), world, translated.data());
  PMPI_Group_free(&members);
  PMPI_Group_free(&world);
  return translated;
}

struct KnownNames {
  std::mutex guard;
  std::unordered_map<const Layout*, const char*> of_types;
  std::unordered_map<ReduceKernel, const char*> of_operators;
};
KnownNames& known_names() {
  static Immortal<KnownNames> names;
  return *names;
}

// Named by their layouts, which live as long as the types do: a name is looked up once.
const char* name_of_type(const Layout* layout) {
  if (layout == nullptr) return "";
  const auto& type = static_cast<const Datatype&>(static_cast<const TypeFacts&>(*layout));
  if (!type.predefined) return "derived";
  auto& names = known_names().of_types;
  const std::scoped_lock lock(known_names().guard);
  const auto found = names.find(layout);
  if (found != names.end()) return found->second;
  std::string name(MPI_MAX_OBJECT_NAME, '\0');
  int length = 0;
  if (PMPI_Type_get_name(type.handle, name.data(), &length) != MPI_SUCCESS) length = 0;
  name.resize(static_cast<std::size_t>(length));
  return names[layout] = intern(name);
}

const char* name_of_operator(const Request& request) {
  if (request.user != nullptr) return "the program's";
  if (request.reducer == nullptr) return "";
  auto& names = known_names().of_operators;
  const std::scoped_lock lock(known_names().guard);
  if (names.empty())
    for (int op = 0; op < static_cast<int>(Op::count_); ++op)
      for (int element = 0; element < static_cast<int>(Element::count_); ++element) {
        const Reducer reducer = make_reducer(static_cast<Op>(op), static_cast<Element>(element));
        if (reducer.kernel != nullptr) names.try_emplace(reducer.kernel, intern(name(static_cast<Op>(op))));
      }
  const auto found = names.find(request.reducer->kernel);
  return found != names.end() ? found->second : "";
}

// Of exchanges whose lengths differ by pair: the mean of this rank's messages.
std::uint64_t bytes_of(const Request& request, const Communicator& communicator) {
  if (!lies_in_pieces(request.call.collective)) return plan::payload_bytes(request.call, communicator.ranks);
  std::uint64_t bytes = 0;
  const auto& sends = request.lists->sends;
  for (const Piece& piece : sends) bytes += piece.bytes;
  return sends.empty() ? 0 : bytes / sends.size();
}

}  // namespace

void note_site(const void* site) { told_site = site; }

const void* take_site(const void* otherwise) {
  const void* site = std::exchange(told_site, nullptr);
  return site != nullptr ? site : otherwise;
}

void RecordedCall::end(MPI_Comm comm, const MPI_Request* request) noexcept {
  const runtime::Span time{.begin_ns = begin_ns_, .end_ns = tl::monotonic_ns()};
  Recorder* to = recorder();
  if (to == nullptr || communicator_ == nullptr) return;
  try {
    if (communicator_->recorded < 0) communicator_->recorded = to->communicator(world_ranks_of(comm));
    const Layout* layout = request_.output.type != nullptr ? request_.output.type : request_.input.type;
    const CallKind kind{.collective = request_.call.collective,
                        .form = form_,
                        .communicator = communicator_->recorded,
                        .type = name_of_type(layout),
                        .op = name_of_operator(request_),
                        .site = site_};
    const std::uint64_t bytes = bytes_of(request_, *communicator_);
    if (form_ == Form::persistent)
      to->add_persistent(kind, bytes, key_of(*request));
    else if (form_ == Form::nonblocking)
      to->add_posted(kind, bytes, time, key_of(*request));
    else
      to->add_call(kind, bytes, time);
  } catch (const std::exception&) {  // no memory: the call is not recorded
  }
}

void start_recorder() {
  const std::string& path = job().config.record_path;
  const bool plans = job().makes_schedule && job().first_rank;
  if (!plans && (path.empty() || (!job().first_rank && path.find("%r") == std::string::npos))) return;
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  auto* made = new Recorder(rank);
  std::vector<int> world(static_cast<std::size_t>(ranks));
  std::iota(world.begin(), world.end(), 0);
  made->communicator(world);  // which has number 0
  runtime::detail::recorder.store(made, std::memory_order_release);
}

void finish_recorder() {
  Recorder* done = runtime::detail::recorder.exchange(nullptr);
  if (done == nullptr) return;
  std::string path = job().config.record_path;
  if (path.empty()) return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (const auto at = path.find("%r"); at != std::string::npos) path.replace(at, 2, std::to_string(rank));
  const Status status = replace_file(path, done->finish(program_invocation_short_name));
  if (!status.ok()) warn("PLAIT_RECORD: " + std::string(status.message()));
}

}  // namespace plait::plugin
