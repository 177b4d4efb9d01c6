#include "tl/ucx/ucx_channel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tl/memory.h"
#include "tl/room.h"
#include "tl/staging_pool.h"
#include "tl/ucx/channel_end.h"
#include "tl/ucx/message_tag.h"
#include "tl/ucx/rail_state.h"
#include "tl/ucx/stall_watch.h"

namespace plait::tl {
namespace {

// Of a lane on one rail, under way at once: short ones do not fill the window of bytes.
constexpr int most_pieces = 64;

constexpr std::uint64_t reported = ~std::uint64_t{0};  // Transfer::mark of a complete message

// Any socket's buffer takes so much. UCX may hold back what exceeds it although the sends are complete, and a rank may
// leave the collective then and call nothing of ours for a long time: after so many bytes the end of a lane's last
// message is sent such that it completes with its arrival. (A flush would do as well, but while a connection is new it
// waits for the peer's next call.)
constexpr std::uint64_t surely_buffered = 4096;

// Fruitless glances between two looks whether a peer has given up: a per cent of the time that they take. One that
// moved something counts as so many of them: what is sent to a peer that has given up fills its memory.
constexpr std::uint32_t listen_every = 256, fruitful_glance = 16;

// The messages to or from one peer with one binding, in order.
struct Lane {
  Transfer* tail = nullptr;
  Stream* streams = nullptr;       // by rail
  std::uint64_t* dealt = nullptr;  // by rail: bytes of the messages that were dealt out whole
};

std::vector<RailState> rail_states(const std::vector<UcxRail>& rails, std::size_t ranks) {
  std::vector<RailState> states;
  for (const UcxRail& rail : rails) states.push_back({rail, std::vector<UcxEndpoint*>(ranks), {}, {}});
  return states;
}

class UcxChannel final : public Channel {
 public:
  UcxChannel(std::vector<UcxRail> rails, std::vector<std::shared_ptr<const UcxPeer>> peers, UcxChannelOptions options);
  ~UcxChannel() override {
    if (active_ > 0) abandon({Code::peer_failed, "its channel was destroyed in the middle of a message"});
  }

  ChannelKind kind() const override { return ChannelKind::ucx; }
  int active() const override { return active_ + unconfirmed_; }
  Result<bool> start(Transfer& transfer) override;
  Result<bool> progress(std::vector<Transfer*>& completed) override;
  void make_room(const BoundSchedule& schedule, std::uint64_t longer_than) override;
  bool arm(WakeUp& wake_up) override;
  void announce_failure(const Status& cause) override;
  void abandon(const Status& cause) override;

 private:
  std::size_t ranks() const { return peers_.size(); }
  std::size_t rails() const { return rails_.size(); }
  bool awaits(std::size_t rail) const {
    return !rails_[rail].pieces.empty() || !rails_[rail].held.empty() || unconfirmed_ > 0;
  }
  Lane& lane_of(const Transfer& transfer) {
    const auto binding = static_cast<std::size_t>(transfer.rail + 1);
    return lanes_[(binding * ranks() + static_cast<std::size_t>(transfer.peer)) * 2 +
                  (transfer.kind == StepKind::send ? 0 : 1)];
  }
  RailShare share(const Transfer& transfer, std::size_t rail) const;
  bool takes_part(const Transfer& transfer, std::size_t rail) const;
  std::int8_t carrier(Lane& lane, const Transfer& transfer) const;
  void skip_foreign(Stream& stream, std::size_t rail) const;
  std::size_t piece_bytes(std::size_t element_bytes) const;
  std::size_t piece_bytes(const Transfer& transfer) const { return piece_bytes(transfer.element_bytes); }
  std::uint64_t most_bytes() const { return static_cast<std::uint64_t>(options_.window) * options_.fragment_bytes; }
  std::uint64_t tag(const Transfer& transfer) const;

  bool confirms(const Transfer& transfer, const UcxEndpoint& endpoint, std::size_t bytes, std::size_t rail) const;
  void note_sent(UcxEndpoint& endpoint, std::size_t bytes, bool confirm, std::size_t rail);
  Status check(const Transfer& transfer) const;
  Result<UcxEndpoint*> endpoint(const Transfer& transfer, std::size_t rail);
  Status fill_window(Stream& stream, std::size_t rail);
  void hold(Stream& stream, std::size_t rail);
  Result<bool> post_held(std::size_t rail);
  Status post_piece(Stream& stream, std::size_t rail, UcxEndpoint& endpoint);
  void* post(Piece& piece, std::byte* address, std::size_t rail, UcxEndpoint& endpoint);
  Result<bool> progress_rail(std::size_t rail);
  Status finish_piece(std::size_t rail, std::size_t index);
  Status land(Piece& piece, std::size_t rail, std::size_t received);
  void report_complete(Transfer& transfer);
  Status check_endpoints(std::size_t rail) const;
  Status look_at_stall();
  Status failure(const Transfer& transfer, std::size_t rail, Code code, const std::string& what) const;
  Status failure(const Transfer& transfer, std::size_t rail, int status) const;
  Status listen();

  UcxChannelOptions options_;
  std::vector<std::shared_ptr<const UcxPeer>> peers_;  // by rank
  std::vector<RailState> rails_;
  std::vector<UcxRail> watched_;
  std::size_t fastest_ = 0;
  std::vector<Stream> streams_;       // by lane and rail
  std::vector<std::uint64_t> dealt_;  // likewise
  std::vector<Lane> lanes_;           // by binding, rank and direction
  std::vector<Transfer*> done_;       // complete, not yet told to the engine
  std::vector<Awaited> awaited_;
  StallWatch watch_;
  StagingPool staging_;
  ChannelEnd end_;
  std::uint32_t glances_ = 0;  // since it listened
  int active_ = 0;
  int unconfirmed_ = 0;   // peers to whom UCX may hold bytes back; with one rail only
  bool stalled_ = false;  // a peer, or a rail, was found to be out of reach
  bool abandoned_ = false;
};

UcxChannel::UcxChannel(std::vector<UcxRail> rails, std::vector<std::shared_ptr<const UcxPeer>> peers,
                       UcxChannelOptions options)
    : options_(std::move(options)),
      peers_(std::move(peers)),
      rails_(rail_states(rails, peers_.size())),
      watched_(std::move(rails)),
      watch_(watched_, peers_, options_.peers_answer),
      end_(rails_, {.communicator = options_.communicator,
                    .rank = options_.rank,
                    .ranks = peers_.size(),
                    .patience_ns = options_.patience_ns}) {
  options_.weights.resize(watched_.size(), 1.0);
  options_.fragment_bytes = std::max<std::size_t>(options_.fragment_bytes, 1);
  options_.window = std::max(options_.window, 1);
  fastest_ = static_cast<std::size_t>(std::ranges::max_element(options_.weights) - options_.weights.begin());
  lanes_.resize((this->rails() + 1) * ranks() * 2);
  streams_.resize(lanes_.size() * this->rails());
  dealt_.resize(streams_.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].streams = &streams_[i * this->rails()];
    lanes_[i].dealt = &dealt_[i * this->rails()];
  }
}

Status UcxChannel::failure(const Transfer& transfer, std::size_t rail, Code code, const std::string& what) const {
  return {code, "ucx: rank " + std::to_string(transfer.peer) + " on " +
                    peers_[static_cast<std::size_t>(transfer.peer)]->host + ", rail " +
                    rails_[rail].rail.worker->rail().name + ": " + what};
}

Status UcxChannel::failure(const Transfer& transfer, std::size_t rail, int status) const {
  const std::string what = rails_[rail].rail.worker->ucp().status_string(static_cast<ucs_status_t>(status));
  const std::string lack = lack_of_files();
  const bool cut = lack.empty() && (status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_NOT_CONNECTED);
  return failure(transfer, rail, cut ? Code::peer_left : Code::peer_failed,
                 (transfer.kind == StepKind::send ? "send: " : "receive: ") + what + lack);
}

// ---- What goes over which rail ----

RailShare UcxChannel::share(const Transfer& transfer, std::size_t rail) const {
  if (transfer.carrier != any_rail) return {0, static_cast<std::size_t>(transfer.carrier) == rail ? transfer.bytes : 0};
  return rail_share(transfer.bytes, transfer.element_bytes, options_.weights, static_cast<int>(rail));
}

// A message of no bytes is one piece on one rail.
bool UcxChannel::takes_part(const Transfer& transfer, std::size_t rail) const {
  const RailShare part = share(transfer, rail);
  if (transfer.bytes > 0) return part.end > part.begin;
  return static_cast<std::size_t>(transfer.carrier) == rail;
}

// Both ends of a lane see the same messages in the same order. They begin with different rails for different pairs, so
// that a single round of messages uses all rails.
std::int8_t UcxChannel::carrier(Lane& lane, const Transfer& transfer) const {
  if (transfer.rail != any_rail) return transfer.rail;
  if (rails() == 1 || transfer.bytes < options_.deal_from) return static_cast<std::int8_t>(fastest_);
  if (transfer.bytes >= options_.stripe_from) return any_rail;
  std::size_t best = fastest_;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < rails(); ++i) {
    const std::size_t rail = (i + static_cast<std::size_t>(options_.rank + transfer.peer)) % rails();
    const double load = static_cast<double>(lane.dealt[rail] + transfer.bytes) / options_.weights[rail];
    if (load >= least) continue;
    least = load;
    best = rail;
  }
  lane.dealt[best] += transfer.bytes;
  return static_cast<std::int8_t>(best);
}

void UcxChannel::skip_foreign(Stream& stream, std::size_t rail) const {
  while (stream.current != nullptr && !takes_part(*stream.current, rail)) stream.current = stream.current->next;
}

// At least one element, else what fits the fragment.
std::size_t UcxChannel::piece_bytes(std::size_t element_bytes) const {
  const std::size_t element = std::max<std::size_t>(element_bytes, 1);
  return std::max(options_.fragment_bytes / element, std::size_t{1}) * element;
}

std::uint64_t UcxChannel::tag(const Transfer& transfer) const {
  const int sender = transfer.kind == StepKind::send ? options_.rank : transfer.peer;
  return message_tag(options_.communicator, sender, static_cast<std::uint64_t>(transfer.rail + 1));
}

// ---- Posting ----

Status UcxChannel::check(const Transfer& transfer) const {
  if (abandoned_) return {Code::peer_failed, "ucx: the channel was given up after an earlier failure"};
  if (transfer.peer < 0 || static_cast<std::size_t>(transfer.peer) >= ranks())
    return {Code::internal, "ucx: no rank " + std::to_string(transfer.peer)};
  if (transfer.rail < any_rail || transfer.rail >= static_cast<int>(rails()))
    return {Code::internal, "ucx: no rail " + std::to_string(transfer.rail)};
  return {};
}

// A receiver connects as well, so that it learns of the sender's end.
Result<UcxEndpoint*> UcxChannel::endpoint(const Transfer& transfer, std::size_t rail) {
  RailState& state = rails_[rail];
  UcxEndpoint*& known = state.endpoints[static_cast<std::size_t>(transfer.peer)];
  if (known != nullptr) return known;
  const UcxPeer& peer = *peers_[static_cast<std::size_t>(transfer.peer)];
  const auto there = std::ranges::find(peer.rails, state.rail.network, &UcxPeer::OnRail::network);
  if (there == peer.rails.end())
    return Status(Code::internal, "ucx: rank " + std::to_string(transfer.peer) + " has no such rail");
  Result<UcxEndpoint*> made = state.rail.worker->connect(peer.process, there->worker);
  if (!made.ok()) return failure(transfer, rail, made.status().code(), made.status().message());
  return known = *made;
}

Result<bool> UcxChannel::start(Transfer& transfer) {
  if (Status status = check(transfer); !status.ok()) return status;
  transfer.mark = 0;
  transfer.next = nullptr;
  Lane& lane = lane_of(transfer);
  transfer.carrier = carrier(lane, transfer);
  const bool waiting = std::any_of(lane.streams, lane.streams + rails(), [](const Stream& s) { return s.current; });
  if (waiting) lane.tail->next = &transfer;
  lane.tail = &transfer;
  ++active_;
  for (std::size_t rail = 0; rail < rails(); ++rail) {
    Stream& stream = lane.streams[rail];
    if (stream.current != nullptr || !takes_part(transfer, rail)) continue;
    stream.current = &transfer;
    const auto lock = rails_[rail].rail.worker->lock();
    if (Status status = fill_window(stream, rail); !status.ok()) return status;
  }
  if (transfer.mark != reported) return false;
  done_.pop_back();  // nothing else can have completed meanwhile
  --active_;
  return true;
}

// A message leaves the stream when the last piece of its share is posted; those pieces then complete it.
Status UcxChannel::fill_window(Stream& stream, std::size_t rail) {
  while (stream.current != nullptr && stream.pieces < most_pieces && stream.bytes < most_bytes()) {
    const Result<UcxEndpoint*> connected = endpoint(*stream.current, rail);
    if (!connected.ok()) return connected.status();
    if (!rails_[rail].rail.worker->ready(**connected)) {
      hold(stream, rail);
      return {};
    }
    if (Status status = post_piece(stream, rail, **connected); !status.ok()) return status;
    const RailShare part = share(*stream.current, rail);
    if (stream.posted < part.end - part.begin) continue;
    Transfer& left = *stream.current;
    stream.current = left.next;
    stream.posted = 0;
    skip_foreign(stream, rail);
    report_complete(left);
  }
  return {};
}

void UcxChannel::hold(Stream& stream, std::size_t rail) {
  if (!std::exchange(stream.held, true)) rails_[rail].held.push_back(&stream);
}

// True when some connection has become ready.
Result<bool> UcxChannel::post_held(std::size_t rail) {
  RailState& state = rails_[rail];
  bool moved = false;
  for (std::size_t index = state.held.size(); index-- > 0;) {
    Stream& stream = *state.held[index];
    UcxEndpoint& connection = *state.endpoints[static_cast<std::size_t>(stream.current->peer)];
    if (!state.rail.worker->ready(connection)) continue;
    state.held[index] = state.held.back();
    state.held.pop_back();
    stream.held = false;
    moved = true;
    if (Status status = fill_window(stream, rail); !status.ok()) return status;
  }
  return moved;
}

Status UcxChannel::post_piece(Stream& stream, std::size_t rail, UcxEndpoint& endpoint) {
  Transfer& transfer = *stream.current;
  const RailShare part = share(transfer, rail);
  const std::uint64_t offset = part.begin + stream.posted;
  const std::size_t bytes = std::min<std::uint64_t>(piece_bytes(transfer), part.end - offset);
  Piece piece{.transfer = &transfer,
              .peer = transfer.peer,
              .sends = transfer.kind == StepKind::send,
              .request = nullptr,
              .offset = offset,
              .bytes = bytes,
              .staging = {},
              .confirmed = false};
  std::byte* address = place_piece(staging_, piece, piece_bytes(transfer));
  piece.request = post(piece, address, rail, endpoint);
  if (UCS_PTR_IS_ERR(piece.request)) return failure(transfer, rail, UCS_PTR_STATUS(piece.request));
  stream.posted += bytes;
  transfer.progressed += bytes;
  if (piece.request == nullptr) return land(piece, rail, bytes);
  ++transfer.mark;
  ++stream.pieces;
  stream.bytes += bytes;
  rails_[rail].pieces.push_back(std::move(piece));
  return {};
}

// Whether the end of this message is to be confirmed. With one rail the lane's last message speaks for the earlier
// ones; with several it may take another rail than they did.
bool UcxChannel::confirms(const Transfer& transfer, const UcxEndpoint& endpoint, std::size_t bytes,
                          std::size_t rail) const {
  return rails_[rail].rail.worker->holds_back() && endpoint.unconfirmed + bytes > surely_buffered &&
         (rails() > 1 || transfer.last_of_lane);
}

void UcxChannel::note_sent(UcxEndpoint& endpoint, std::size_t bytes, bool confirm, std::size_t rail) {
  if (!rails_[rail].rail.worker->holds_back()) return;
  const bool before = endpoint.unconfirmed > surely_buffered;
  endpoint.unconfirmed = confirm ? 0 : endpoint.unconfirmed + bytes;
  const bool after = endpoint.unconfirmed > surely_buffered;
  if (rails() == 1) unconfirmed_ = std::max(unconfirmed_ + (after ? 1 : 0) - (before ? 1 : 0), 0);
}

// nullptr: the send is complete at once.
void* UcxChannel::post(Piece& piece, std::byte* address, std::size_t rail, UcxEndpoint& endpoint) {
  RailWorker& worker = *rails_[rail].rail.worker;
  ucp_request_param_t parameters;
  parameters.op_attr_mask = 0;
  if (piece.transfer->kind == StepKind::send) {
    if (endpoint.handle == nullptr || endpoint.failure.load(std::memory_order_relaxed) != UCS_OK)
      return reinterpret_cast<void*>(static_cast<std::intptr_t>(endpoint.failure.load()));
    worker.count_bytes(piece.bytes);
    const bool ends = piece.offset + piece.bytes == share(*piece.transfer, rail).end;
    piece.confirmed = ends && confirms(*piece.transfer, endpoint, piece.bytes, rail);
    note_sent(endpoint, piece.bytes, piece.confirmed, rail);
    const auto send = piece.confirmed ? worker.ucp().tag_send_sync : worker.ucp().tag_send;
    return send(endpoint.handle, address, piece.bytes, tag(*piece.transfer), &parameters);
  }
  // A receive that completes at once would not say how long its message was (UCX 1.13).
  parameters.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return worker.ucp().tag_recv(worker.worker(), address, piece.bytes, tag(*piece.transfer), whole_tag, &parameters);
}

// Each rail may carry all of a lane's pieces.
void UcxChannel::make_room(const BoundSchedule& schedule, std::uint64_t longer_than) {
  const std::size_t piece = piece_bytes(schedule.element_bytes);
  const Room room = room_of(schedule, kind(), longer_than, {piece, most_bytes(), std::size_t{most_pieces}});
  for (RailState& rail : rails_) rail.pieces.reserve(room.pieces);
  done_.reserve(schedule.steps.size());
  staging_.reserve(room.staged * rails(), piece);
}

// ---- Completion ----

Result<bool> UcxChannel::progress(std::vector<Transfer*>& completed) {
  bool moved = false;
  for (std::size_t rail = 0; rail < rails(); ++rail) {
    if (!awaits(rail)) continue;
    Result<bool> progress = progress_rail(rail);
    if (!progress.ok()) return progress;
    moved |= *progress;
  }
  moved |= !done_.empty();
  active_ -= static_cast<int>(done_.size());
  completed.insert(completed.end(), done_.begin(), done_.end());
  done_.clear();
  glances_ += moved ? fruitful_glance : 1;
  if (glances_ >= listen_every)
    if (Status status = listen(); !status.ok()) return status;
  if (moved) {
    watch_.moved();
    return true;
  }
  if (watch_.due())
    if (Status status = look_at_stall(); !status.ok()) return status;
  return false;
}

// On all rails: who waits on one may be told on another.
Status UcxChannel::listen() {
  glances_ = 0;
  for (RailState& state : rails_) {
    RailWorker& worker = *state.rail.worker;
    const auto turn = worker.lock();
    worker.progress();
    end_.listen(worker);
  }
  return end_.heard();
}

// Other threads of this process may take what arrives here while they look after their own: then this one wakes only
// when the bounded sleep ends.
bool UcxChannel::arm(WakeUp& wake_up) {
  glances_ = listen_every - 1;  // sleepers glance seldom: the next glance listens
  bool all = true;
  for (std::size_t rail = 0; rail < rails(); ++rail) {
    if (!awaits(rail)) continue;
    const auto lock = rails_[rail].rail.worker->lock();
    all &= rails_[rail].rail.worker->arm(wake_up);
  }
  return all;
}

Result<bool> UcxChannel::progress_rail(std::size_t rail) {
  RailState& state = rails_[rail];
  RailWorker& worker = *state.rail.worker;
  const auto lock = worker.lock();
  if (worker.crossed()) return worker.why_crossed();
  worker.progress();
  bool moved = false;
  // From the back: the piece moved into a gap was looked at already, and those posted meanwhile wait for the next
  // glance.
  for (std::size_t index = state.pieces.size(); index-- > 0;) {
    if (worker.ucp().request_check_status(state.pieces[index].request) == UCS_INPROGRESS) continue;
    moved = true;
    if (Status status = finish_piece(rail, index); !status.ok()) return status;
  }
  if (!state.held.empty()) {
    const Result<bool> posted = post_held(rail);
    if (!posted.ok()) return posted;
    moved |= *posted;
  }
  if (worker.failures() > 0)
    if (Status status = check_endpoints(rail); !status.ok()) return status;
  return moved;
}

Status UcxChannel::finish_piece(std::size_t rail, std::size_t index) {
  RailState& state = rails_[rail];
  const UcpLibrary& ucp = state.rail.worker->ucp();
  Piece piece = std::move(state.pieces[index]);
  if (index + 1 < state.pieces.size()) state.pieces[index] = std::move(state.pieces.back());
  state.pieces.pop_back();
  Transfer& transfer = *piece.transfer;
  std::size_t received = piece.bytes;
  ucs_status_t status = ucp.request_check_status(piece.request);
  if (transfer.kind != StepKind::send) {
    ucp_tag_recv_info_t info = {};
    status = ucp.recv_request_test(piece.request, &info);
    received = info.length;
  }
  ucp.request_free(piece.request);
  if (status != UCS_OK) return failure(transfer, rail, status);
  --transfer.mark;
  if (Status landed = land(piece, rail, received); !landed.ok()) return landed;
  report_complete(transfer);
  Stream& stream = lane_of(transfer).streams[rail];
  --stream.pieces;
  stream.bytes -= piece.bytes;
  return fill_window(stream, rail);
}

// The piece's bytes are here, or sent.
Status UcxChannel::land(Piece& piece, std::size_t rail, std::size_t received) {
  Transfer& transfer = *piece.transfer;
  if (transfer.kind != StepKind::send) {
    if (received != piece.bytes)
      return {Code::internal, "ucx: rank " + std::to_string(transfer.peer) + ", rail " +
                                  rails_[rail].rail.worker->rail().name + ": sent a piece of " +
                                  std::to_string(received) + " bytes, expected " + std::to_string(piece.bytes)};
  }
  land_piece(staging_, piece);
  return {};
}

void UcxChannel::report_complete(Transfer& transfer) {
  if (transfer.mark > 0 || transfer.progressed < transfer.bytes) return;
  transfer.mark = reported;
  done_.push_back(&transfer);
}

Status UcxChannel::check_endpoints(std::size_t rail) const {
  for (const Piece& piece : rails_[rail].pieces) {
    const UcxEndpoint* endpoint = rails_[rail].endpoints[static_cast<std::size_t>(piece.transfer->peer)];
    const int failed = endpoint->failure.load(std::memory_order_relaxed);
    if (failed != UCS_OK) return failure(*piece.transfer, rail, failed);
  }
  return {};
}

Status UcxChannel::look_at_stall() {
  awaited_.clear();
  const auto add = [&](std::size_t rail, const Transfer& transfer) {
    const Awaited one{static_cast<int>(rail), transfer.peer};
    if (std::ranges::find(awaited_, one) == awaited_.end()) awaited_.push_back(one);
  };
  for (std::size_t rail = 0; rail < rails(); ++rail) {
    for (const Piece& piece : rails_[rail].pieces) add(rail, *piece.transfer);
    for (const Stream* stream : rails_[rail].held) add(rail, *stream->current);
  }
  Status status = watch_.look(awaited_);
  stalled_ |= !status.ok();
  return status;
}

// ---- Giving up ----

void UcxChannel::announce_failure(const Status& cause) { end_.announce(cause); }

void UcxChannel::abandon(const Status& cause) {
  if (abandoned_) return;
  abandoned_ = true;
  end_.come_to(cause, stalled_);
  std::ranges::fill(streams_, Stream{});
  active_ = unconfirmed_ = 0;
}

}  // namespace

RailShare rail_share(std::uint64_t bytes, std::size_t element_bytes, std::span<const double> weights, int rail) {
  const std::uint64_t element = std::max<std::size_t>(element_bytes, 1);
  double all = 0, before = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (i < static_cast<std::size_t>(rail)) before += weights[i];
    all += weights[i];
  }
  const auto cut = [&](double part) {
    const auto elements = static_cast<double>(bytes / element);
    return static_cast<std::uint64_t>(elements * (part / all)) * element;
  };
  const bool last = static_cast<std::size_t>(rail) + 1 == weights.size();
  return {cut(before), last ? bytes : cut(before + weights[static_cast<std::size_t>(rail)])};
}

std::unique_ptr<Channel> make_ucx_channel(std::vector<UcxRail> rails, std::vector<std::shared_ptr<const UcxPeer>> peers,
                                          UcxChannelOptions options) {
  return std::make_unique<UcxChannel>(std::move(rails), std::move(peers), std::move(options));
}

}  // namespace plait::tl
