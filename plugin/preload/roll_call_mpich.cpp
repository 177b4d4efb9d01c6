// MPICH's processes meet at barriers of their launcher while MPI starts. Before the first of these each rank puts its
// answer where the barrier brings it to all, over the connection that MPICH has to the launcher. Before the second each
// rank looks for the next one's answer and puts down that there is none: two questions a rank, however many ranks.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "core/imported_function.h"
#include "core/log.h"
#include "plait/plait.h"
#include "plugin/launcher/pmi_store.h"
#include "plugin/mpi/host/host.h"
#include "plugin/preload/roll_call.h"

namespace plait::plugin::preload {
namespace {

constexpr const char* hooked = "write";
constexpr std::string_view meeting = "cmd=barrier_in";
constexpr const char* absence = "plait-preload-absent";

// What this process does at the meetings.
struct RollCall {
  int meetings = 0;
  int rank = 0, ranks = 0;
  std::optional<PmiStore> store;  // once it has answered
};
constinit RollCall call;

using Key = std::array<char, 32>;

Key key_of(int rank) {
  Key key{};
  std::snprintf(key.data(), key.size(), "plait-preload-%d", rank);
  return key;
}

int number_of(std::string_view name) {
  const std::string text = process_variable(name);
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Status answer(int descriptor) {
  call.rank = number_of("PMI_RANK");
  call.ranks = number_of("PMI_SIZE");
  if (call.rank < 0 || call.ranks < 1) return {Code::unavailable, "pmi: the launcher has not numbered the ranks"};
  Result<PmiStore> opened = PmiStore::open(descriptor);
  if (!opened.ok()) return opened.status();
  if (Status status = opened->put(key_of(call.rank).data(), plait_version()); !status.ok()) return status;
  call.store = std::move(*opened);
  return {};
}

bool answered(int rank) {
  const Result<std::string> version = call.store->get(key_of(rank).data());
  return version.ok() && *version == plait_version();
}

// Where ranks are absent, some rank that is not stands before one of them in the ring.
Status look_at_next() {
  const int next = (call.rank + 1) % call.ranks;
  return answered(next) ? Status() : call.store->put(absence, std::to_string(next));
}

void meet(int descriptor) {
  ++call.meetings;
  Status status;
  if (call.meetings == 1) status = answer(descriptor);
  if (call.meetings == 2 && call.store) status = look_at_next();
  if (!status.ok()) debug("roll call: " + status.message());
}

// A rank that has no memory for its answer is absent.
ssize_t write_and_meet(int descriptor, const void* data, std::size_t bytes) noexcept {
  try {
    if (std::string_view(static_cast<const char*>(data), bytes).starts_with(meeting)) meet(descriptor);
  } catch (const std::exception&) {
  }
  return write(descriptor, data, bytes);
}

// After two meetings: what was found at the second.
Attendance found_absent() {
  const Result<std::string> text = call.store->get(absence);
  if (!text.ok()) return {};
  int absent = 0;
  std::from_chars(text->data(), text->data() + text->size(), absent);
  return {.first_present = (absent + call.ranks - 1) % call.ranks, .first_absent = absent};
}

void replace_write(ssize_t (*function)(int, const void*, std::size_t)) {
  replace_imported_function(reinterpret_cast<const void*>(host().init), hooked,
                            reinterpret_cast<const void*>(function));
}

}  // namespace

void begin_roll_call() { replace_write(write_and_meet); }

void leave_roll_call() { replace_write(write); }

Attendance end_roll_call() {
  leave_roll_call();
  int ranks = 1, rank = 0;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (ranks == 1) return {};
  if (call.meetings == 0) return {.known = false};
  if (!call.store) return {.first_present = rank, .first_absent = rank};  // as the others see it
  return call.meetings > 1 ? found_absent() : call_roll(ranks, answered);
}

}  // namespace plait::plugin::preload
