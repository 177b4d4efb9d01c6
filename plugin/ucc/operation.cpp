#include "plugin/ucc/operation.h"

#include <sched.h>

#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "plugin/ucc/arguments.h"
#include "plugin/ucc/types.h"
#include "runtime/job/job.h"
#include "runtime/job/reasons.h"
#include "runtime/progress/prepare_operation.h"
#include "runtime/record/report_rows.h"
#include "tl/trace.h"

namespace plait::plugin {

namespace {

// Turns that moved nothing. Whoever computes beside keeps the core that is given away for milliseconds: where each rank
// has a core of its own a short collective is over before. Where they share cores another rank is what is waited for.
constexpr std::uint32_t look_every = 256, yield_every = 256, yield_shared_every = 1;

// Glances of one turn of UCC's: what is between two turns (UCC's queue, and what its caller turns besides) takes longer
// than the other ranks are behind in most short collectives, and where ranks share cores each of them goes through it.
// But the caller may only want to know (MPI_Test), and have work of its own.
constexpr int glances_a_turn = 32;
constexpr std::uint64_t longest_rest_ns = 50'000;

}  // namespace

// Nobody looks at it any more once it was told.
void UccOperation::tell() noexcept {
  if (averaged_ != 0 && error == 0 && request.output.type != nullptr)
    divide(request.output.address, request.output.count, averaged_, team_.ranks);
  told_.store(true, std::memory_order_release);
}

void UccOperation::note_left(const Request& left, const char* why) noexcept {
  if (!reporting()) return;
  try {
    const Collective collective = left.call.collective;
    const bool lists = collective == Collective::allgatherv || collective == Collective::reduce_scatter;
    const std::size_t bytes = !lists || left.call.counts != nullptr ? payload_bytes(left.call, team_.ranks) : 0;
    report_row({.collective = collective,
                .ranks = team_.ranks,
                .size_class = lies_in_pieces(collective) ? -1 : size_class(bytes),
                .plan = "host",
                .channels = "",
                .reason = why,
                .form = Form::nonblocking,
                .grid = ""})
        .add(bytes, 0);
  } catch (const std::exception&) {  // the report lacks a line
  }
}

ucc_status_t UccOperation::prepare(const ucc_coll_args_t& args) noexcept {
  const auto collective = collective_of(args.coll_type);
  if (!collective || (args.mask & UCC_COLL_ARGS_FIELD_ACTIVE_SET) != 0 || !accepting()) {
    note_host_call();
    return UCC_ERR_NOT_SUPPORTED;
  }
  communicator = &team_;
  request.call.collective = *collective;
  request.lists = &lists_;
  request.posted = true;
  const bool averages = combines(args.coll_type) && args.op == UCC_OP_AVG;
  averaged_ = averages ? combined_type(args, team_.rank) : 0;
  try {
    const char* unfit = read_arguments(args, team_, request);
    if (averages && !has_average(averaged_)) unfit = reasons::undefined_operator;
    nothing_ = unfit != nullptr && std::string_view(unfit) == reasons::no_data;
    if (nothing_) return UCC_OK;
    sends_copy_ = unfit == nullptr && overwrites_what_it_sends(args);
    if (sends_copy_) send_from_copy();
    if (team_.alone()) return prepare_alone(unfit);
    const Decision decision = prepare_operation(*this, Form::nonblocking, unfit);
    if (decision.what == Decision::What::run) return UCC_OK;
    note_host_call();
    note_left(request, reason != nullptr ? reason : "");
    if (decision.what != Decision::What::fail) return UCC_ERR_NOT_SUPPORTED;
    return team_.error != 0 ? static_cast<ucc_status_t>(team_.error) : UCC_ERR_IO_ERROR;  // the code comes with its end
  } catch (const std::exception&) {
    team_.progress.leave_out(team_, UCC_ERR_NO_MEMORY);
    return UCC_ERR_NO_MEMORY;
  }
}

// An exchange of what lies in pieces, or in regions; nothing to be done where the data are in place.
ucc_status_t UccOperation::prepare_alone(const char* unfit) {
  return unfit == nullptr ? UCC_OK : UCC_ERR_NOT_SUPPORTED;
}

void UccOperation::send_from_copy() {
  std::size_t bytes = 0;
  for (const Piece& piece : lists_.sends) bytes += piece.bytes;
  sent_.resize(bytes);
  std::byte* to = sent_.data();
  for (Piece& piece : lists_.sends) piece.address = std::exchange(to, to + piece.bytes);
}

// What is sent lies where it will be received.
void UccOperation::copy_sent() noexcept {
  for (std::size_t rank = 0; rank < lists_.sends.size(); ++rank)
    if (const Piece& piece = lists_.sends[rank]; piece.bytes > 0)
      std::memcpy(piece.address, lists_.receives[rank].address, piece.bytes);
}

void UccOperation::post_alone() noexcept {
  if (lies_in_pieces(request.call.collective)) {
    if (!lists_.sends.empty() && !lists_.receives.empty() && lists_.receives[0].bytes > 0)
      std::memmove(lists_.receives[0].address, lists_.sends[0].address, lists_.receives[0].bytes);
  } else if (request.output.bytes > 0 && request.input.type != nullptr && request.sharing == Sharing::none) {
    std::memmove(request.output.address, request.input.address, request.output.bytes);
  }
  told_.store(true, std::memory_order_release);
}

// As it was before its first post, but for what was prepared.
void UccOperation::rewind() {
  execution = {};
  running = failed = laid_out = false;
  error = 0;
  next = nullptr;
  complete.store(false, std::memory_order_relaxed);
  told_.store(false, std::memory_order_relaxed);
}

bool UccOperation::clear() noexcept {
  if (posted_ && !told_.load(std::memory_order_acquire)) {
    team_.give_up_on_one();
    return false;
  }
  posted_ = false;
  runtime::clear(*this);
  return true;
}

void UccOperation::post() noexcept {
  rewind();
  posted_ = true;
  idle_turns_ = 0;
  if (nothing_) return told_.store(true, std::memory_order_release);
  if (sends_copy_) copy_sent();
  if (team_.alone()) return post_alone();
  begin_ns = reporting() ? monotonic_ns() : 0;
  team_.progress.hand_over(*this);
}

// A turn that moved nothing; true where the core was given away meanwhile.
bool UccOperation::rest() noexcept {
  ++idle_turns_;
  if (idle_turns_ % look_every == 0) team_.look_around();
  if (idle_turns_ % (team_.yields() ? yield_shared_every : yield_every) != 0) return false;
  sched_yield();
  return true;
}

ucc_status_t UccOperation::turn() noexcept {
  std::uint64_t rested_ns = 0;  // when the first rest began
  for (int glance = 0; glance < glances_a_turn; ++glance) {
    if (told_.load(std::memory_order_acquire)) return static_cast<ucc_status_t>(error);
    if (team_.progress.progress() != 0) continue;
    if (rested_ns == 0) rested_ns = monotonic_ns();
    if (rest() && monotonic_ns() - rested_ns > longest_rest_ns) break;
  }
  return told_.load(std::memory_order_acquire) ? static_cast<ucc_status_t>(error) : UCC_INPROGRESS;
}

}  // namespace plait::plugin
