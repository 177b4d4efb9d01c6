// Messages travel in pieces of one size rule, known to both sides, so that the k-th piece sent meets the k-th received
// (MPI keeps the order of messages between two ranks with one tag). All pieces under way are tested by one call.
#include "tl/mpi/mpi_channel.h"

#include <sched.h>

#include <algorithm>
#include <string>

#include "tl/memory.h"
#include "tl/rank_index.h"
#include "tl/room.h"
#include "tl/staging_pool.h"

namespace plait::tl {
namespace {

constexpr int tag = 1;

std::string error_text(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  PMPI_Error_string(error, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

// One message part under way.
struct Piece {
  Transfer* transfer;
  std::size_t lane;
  std::uint64_t offset;
  int bytes;
  StagingPool::Buffer staging;  // empty: in place
  std::uint32_t generation = 0;
};

// The messages to or from one peer, in order. The head's pieces are posted first.
struct Lane {
  Transfer* head = nullptr;
  Transfer* tail = nullptr;
  int under_way = 0;
};

class MpiChannel final : public Channel {
 public:
  MpiChannel(MPI_Comm communicator, MpiChannelOptions options) : communicator_(communicator), options_(options) {
    PMPI_Comm_size(communicator_, &ranks_);
    options_.fragment_bytes = std::clamp<std::size_t>(options_.fragment_bytes, 1, 1u << 30);
    options_.window = std::max(options_.window, 1);
  }
  ~MpiChannel() override { give_up(); }

  ChannelKind kind() const override { return ChannelKind::mpi; }
  int active() const override { return active_; }
  Result<bool> start(Transfer& transfer) override;
  Result<bool> progress(std::vector<Transfer*>& completed) override;
  void make_room(const BoundSchedule& schedule, std::uint64_t longer_than) override;
  void abandon(const Status& cause) override;

 private:
  void give_up();
  std::size_t lane_of(std::int32_t peer, StepKind kind);
  std::size_t piece_bytes(std::size_t element_bytes) const;
  std::size_t piece_bytes(const Transfer& transfer) const { return piece_bytes(transfer.element_bytes); }
  Status fill_window(std::size_t lane);
  Status post_piece(std::size_t lane, Transfer& transfer);
  Status finish_piece(std::size_t index, const MPI_Status& status);
  Status failure(const Transfer& transfer, int error) const;

  MPI_Comm communicator_;
  MpiChannelOptions options_;
  int ranks_ = 0;
  RankIndex peers_;                    // with which there were messages
  std::vector<Lane> lanes_;            // two a peer: to it, and from it
  std::vector<MPI_Request> requests_;  // those of pieces_, one each, without gaps
  std::vector<Piece> pieces_;
  std::vector<int> finished_;  // what one MPI_Testsome reports
  std::vector<MPI_Status> statuses_;
  StagingPool staging_;
  int active_ = 0;
  bool abandoned_ = false;
};

// Its lanes begin with the first message.
std::size_t MpiChannel::lane_of(std::int32_t peer, StepKind kind) {
  std::int32_t found = peers_.find(peer);
  if (found == RankIndex::none) {
    found = static_cast<std::int32_t>(peers_.size());
    lanes_.resize(lanes_.size() + 2);
    peers_.add(peer, found);
  }
  return 2 * static_cast<std::size_t>(found) + (kind == StepKind::send ? 0 : 1);
}

Status MpiChannel::failure(const Transfer& transfer, int error) const {
  return {Code::peer_failed, "mpi: " + std::string(transfer.kind == StepKind::send ? "send to" : "receive from") +
                                 " rank " + std::to_string(transfer.peer) + ": " + error_text(error)};
}

Result<bool> MpiChannel::start(Transfer& transfer) {
  if (abandoned_) return {Code::peer_failed, "mpi: the channel was given up after an earlier failure"};
  if (transfer.peer < 0 || transfer.peer >= ranks_)
    return {Code::internal, "mpi: no rank " + std::to_string(transfer.peer)};
  transfer.mark = 0;
  transfer.next = nullptr;
  const std::size_t number = lane_of(transfer.peer, transfer.kind);
  Lane& lane = lanes_[number];
  if (lane.head == nullptr)
    lane.head = &transfer;
  else
    lane.tail->next = &transfer;
  lane.tail = &transfer;
  ++active_;
  if (Status status = fill_window(number); !status.ok()) return status;
  return false;
}

// At least one element, else what fits the fragment.
std::size_t MpiChannel::piece_bytes(std::size_t element_bytes) const {
  const std::size_t element = std::max<std::size_t>(element_bytes, 1);
  return std::max(options_.fragment_bytes / element, std::size_t{1}) * element;
}

void MpiChannel::make_room(const BoundSchedule& schedule, std::uint64_t longer_than) {
  const std::size_t piece = piece_bytes(schedule.element_bytes), window = static_cast<std::size_t>(options_.window);
  for (const plan::Lane& lane : schedule.lanes)
    if (lane.steps.count > 0) {
      const BoundStep& step = schedule.steps[schedule.lane_steps[lane.steps.first]];
      if (step.channel == kind() && step.kind != StepKind::shm_collective) lane_of(step.peer, step.kind);
    }
  const Room room = room_of(schedule, kind(), longer_than, {piece, std::uint64_t{1} << 62, window});
  // A glance posts new pieces before it takes those that are finished out of the lists.
  const std::size_t listed = 2 * room.pieces;
  requests_.reserve(listed);
  pieces_.reserve(listed);
  finished_.reserve(listed);
  statuses_.reserve(listed);
  staging_.reserve(room.staged, piece);
}

// A message leaves the lane when its last piece is posted; those pieces then complete it.
Status MpiChannel::fill_window(std::size_t number) {
  Lane& lane = lanes_[number];
  while (lane.head != nullptr && lane.under_way < options_.window) {
    Transfer& transfer = *lane.head;
    if (Status status = post_piece(number, transfer); !status.ok()) return status;
    if (transfer.progressed == transfer.bytes) lane.head = transfer.next;
  }
  return {};
}

Status MpiChannel::post_piece(std::size_t lane, Transfer& transfer) {
  const std::uint64_t offset = transfer.progressed;
  const std::size_t bytes = std::min<std::uint64_t>(piece_bytes(transfer), transfer.bytes - offset);
  Piece piece{.transfer = &transfer, .lane = lane, .offset = offset, .bytes = static_cast<int>(bytes), .staging = {}};
  std::byte* address = place_piece(staging_, piece, piece_bytes(transfer));
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = transfer.kind == StepKind::send
                        ? PMPI_Isend(address, piece.bytes, MPI_BYTE, transfer.peer, tag, communicator_, &request)
                        : PMPI_Irecv(address, piece.bytes, MPI_BYTE, transfer.peer, tag, communicator_, &request);
  if (error != MPI_SUCCESS) return failure(transfer, error);
  requests_.push_back(request);
  pieces_.push_back(std::move(piece));
  transfer.progressed += bytes;
  ++transfer.mark;
  ++lanes_[lane].under_way;
  return {};
}

Result<bool> MpiChannel::progress(std::vector<Transfer*>& completed) {
  const std::size_t tested = requests_.size();
  if (finished_.size() < tested) {
    finished_.resize(tested);
    statuses_.resize(tested);
  }
  int count = 0;
  const int error =
      PMPI_Testsome(static_cast<int>(tested), requests_.data(), &count, finished_.data(), statuses_.data());
  if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS)
    return {Code::peer_failed, "mpi: testing messages: " + error_text(error)};
  if (count == MPI_UNDEFINED || count == 0) return false;
  const std::size_t finished = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < finished; ++i) {
    if (error == MPI_ERR_IN_STATUS && statuses_[i].MPI_ERROR != MPI_SUCCESS)
      return failure(*pieces_[static_cast<std::size_t>(finished_[i])].transfer, statuses_[i].MPI_ERROR);
    if (Status status = finish_piece(static_cast<std::size_t>(finished_[i]), statuses_[i]); !status.ok()) return status;
  }
  // From the back, so that the piece moved into a gap is one that is still under way.
  std::sort(finished_.begin(), finished_.begin() + count);
  for (std::size_t i = finished; i-- > 0;) {
    const std::size_t index = static_cast<std::size_t>(finished_[i]);
    Transfer* transfer = pieces_[index].transfer;
    if (transfer->mark == 0 && transfer->progressed == transfer->bytes) {
      completed.push_back(transfer);
      --active_;
      transfer->mark = 1;  // several of its pieces may stand in this list; it is reported once
    }
    requests_[index] = requests_.back();
    requests_.pop_back();
    if (index + 1 < pieces_.size()) pieces_[index] = std::move(pieces_.back());
    pieces_.pop_back();
  }
  return true;
}

Status MpiChannel::finish_piece(std::size_t index, const MPI_Status& status) {
  Piece& piece = pieces_[index];
  Transfer& transfer = *piece.transfer;
  if (transfer.kind != StepKind::send) {
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != piece.bytes)
      return {Code::internal, "mpi: rank " + std::to_string(transfer.peer) + " sent a piece of " +
                                  std::to_string(bytes) + " bytes, expected " + std::to_string(piece.bytes)};
  }
  land_piece(staging_, piece);
  --transfer.mark;
  const std::size_t lane = piece.lane;
  --lanes_[lane].under_way;
  return fill_window(lane);
}

// A receive that was cancelled completes at once; one that has begun to arrive, when it has: MPI would write to its
// memory otherwise when the program has it back. A send cannot be cancelled in practice: its request is let go, and a
// staging buffer that MPI may still read is never freed.
void MpiChannel::give_up() {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    int done = 0;
    if (pieces_[i].transfer->kind != StepKind::send) {
      PMPI_Cancel(&requests_[i]);
      while (PMPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) sched_yield();
    }
    if (done == 0 && requests_[i] != MPI_REQUEST_NULL) {
      PMPI_Request_free(&requests_[i]);
      static_cast<void>(pieces_[i].staging.release());
    }
  }
  requests_.clear();
  pieces_.clear();
  std::fill(lanes_.begin(), lanes_.end(), Lane{});
  active_ = 0;
}

void MpiChannel::abandon(const Status&) {
  give_up();
  abandoned_ = true;
}

}  // namespace

std::unique_ptr<Channel> make_mpi_channel(MPI_Comm communicator, MpiChannelOptions options) {
  return std::make_unique<MpiChannel>(communicator, options);
}

}  // namespace plait::tl
