#include "tl/device/piece_service.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/attempt.h"
#include "core/descriptor.h"
#include "core/immortal.h"
#include "tl/device/process_number.h"

namespace plait::tl {
namespace {

constexpr int waiting_askers = 64;
constexpr long answer_s = 5, question_s = 1;  // a process that was stopped must not keep others for ever

// ---- Messages ----

struct Question {
  std::uint64_t offer = 0;
};

// With the files of as many pieces.
struct Answer {
  std::uint32_t count = 0;  // 0: none, because
  char why[124] = "";
  std::uint64_t bytes[most_pieces] = {};  // of each
};

union FilesRoom {
  cmsghdr header;
  char bytes[CMSG_SPACE(most_pieces * sizeof(int))];
};

// A message with this answer and room for its files; `room` and `place` stay with it.
msghdr message_with(Answer& answer, iovec& place, FilesRoom& room) {
  place = {.iov_base = &answer, .iov_len = sizeof answer};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  message.msg_control = room.bytes;
  message.msg_controllen = sizeof room.bytes;
  return message;
}

struct SocketName {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

// In no folder: it goes with the process.
SocketName name_of(std::uint64_t process) {
  SocketName name;
  name.address.sun_family = AF_UNIX;
  const int length = std::snprintf(name.address.sun_path + 1, sizeof name.address.sun_path - 1, "plait-device-%016llx",
                                   static_cast<unsigned long long>(process));
  name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  return name;
}

bool is_of_this_user(const Descriptor& socket) {
  ucred other{};
  socklen_t bytes = sizeof other;
  return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 && other.uid == geteuid();
}

bool limit_waits(const Descriptor& socket, long seconds) {
  const timeval limit{.tv_sec = seconds, .tv_usec = 0};
  return setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
         setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0;
}

Descriptor make_socket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

Status failed(const char* what) {
  return {Code::unavailable, std::string("device memory: ") + what + ": " + std::strerror(errno)};
}

// ---- Offers ----

struct Offer {
  std::uint64_t number = 0;
  const DeviceDriver* driver = nullptr;
  std::vector<OwnPiece> pieces;
  std::uint32_t users = 0;
};

struct Offers {
  std::mutex guard;
  std::vector<Offer> all;
  std::uint64_t next = first_offer;
  pid_t served_by = 0;  // the process whose thread answers
};
Offers& offers() {
  static Immortal<Offers> made;
  return *made;
}

std::optional<Offer> find_offer(std::uint64_t number) {
  const std::scoped_lock lock(offers().guard);
  const auto found = std::ranges::find(offers().all, number, &Offer::number);
  if (found == offers().all.end()) return std::nullopt;
  return *found;
}

// ---- The thread that answers ----

Status open_pieces(std::uint64_t number, std::vector<Descriptor>& files, Answer& answer) {
  const std::optional<Offer> offer = find_offer(number);
  if (!offer || !are_there(*offer->driver, offer->pieces))
    return {Code::unavailable, "device memory: what was offered is there no more"};
  for (const OwnPiece& piece : offer->pieces) {
    const Result<int> file =
        offer->driver->share_as_file(offer->driver->memory_at(reinterpret_cast<void*>(piece.begin)));
    if (!file.ok()) return file.status();
    answer.bytes[files.size()] = piece.bytes;
    files.emplace_back(*file);
  }
  return {};
}

void send_answer(const Descriptor& asker, Answer& answer, const std::vector<Descriptor>& files) {
  iovec place{};
  FilesRoom room{};
  msghdr message = message_with(answer, place, room);
  if (files.empty()) {
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  } else {
    message.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    for (std::size_t at = 0; at < files.size(); ++at) {
      const int file = files[at].number();
      std::memcpy(CMSG_DATA(header) + at * sizeof file, &file, sizeof file);
    }
  }
  // Who has asked may be gone.
  static_cast<void>(sendmsg(asker.number(), &message, MSG_NOSIGNAL));
}

void answer_one(const Descriptor& asker) {
  Question question;
  if (!is_of_this_user(asker) || !limit_waits(asker, question_s)) return;
  if (recv(asker.number(), &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question)) return;
  Answer answer;
  std::vector<Descriptor> files;
  const Status opened = attempt([&] { return open_pieces(question.offer, files, answer); });
  if (opened.ok()) {
    answer.count = static_cast<std::uint32_t>(files.size());
  } else {
    files.clear();
    std::snprintf(answer.why, sizeof answer.why, "%s", opened.message().c_str());
  }
  send_answer(asker, answer, files);
}

// Until the process ends.
void answer_all(int listener) {
  for (;;) {
    const Descriptor asker(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (asker.is_open())
      answer_one(asker);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    else if (errno != EINTR && errno != ECONNABORTED)
      return;
  }
}

// The program's signals are not its business.
void start_thread(int listener) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const Status started = attempt([&]() -> Status {
    std::thread([listener] { answer_all(listener); }).detach();
    return {};
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started.ok()) throw std::bad_alloc();
}

// Precondition: the offers' lock is held.
Status serve() {
  if (offers().served_by == getpid()) return {};
  Descriptor listener = make_socket();
  const SocketName name = name_of(process_number());
  if (!listener.is_open() ||
      bind(listener.number(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0 ||
      listen(listener.number(), waiting_askers) != 0)
    return failed("no socket to hand it on by");
  start_thread(listener.number());
  listener.release();  // the thread's, for good
  offers().served_by = getpid();
  return {};
}

}  // namespace

Result<std::uint64_t> offer_pieces(const DeviceDriver& driver, const std::vector<OwnPiece>& pieces) {
  Offers& known = offers();
  const std::scoped_lock lock(known.guard);
  if (const Status served = attempt([] { return serve(); }); !served.ok()) return served;
  const auto same = std::ranges::find(known.all, pieces, &Offer::pieces);
  if (same != known.all.end()) {
    ++same->users;
    return same->number;
  }
  known.all.push_back({.number = known.next, .driver = &driver, .pieces = pieces, .users = 1});
  return known.next++;
}

void withdraw_offer(std::uint64_t number) noexcept {
  const std::scoped_lock lock(offers().guard);
  std::erase_if(offers().all, [number](Offer& offer) { return offer.number == number && --offer.users == 0; });
}

// ---- Who asks ----

namespace {

// The files that came with a message.
FetchedPieces files_in(msghdr& message, const Answer& answer, std::size_t& count) {
  FetchedPieces fetched;
  count = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t files = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t at = 0; at < files; ++at) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(header) + at * sizeof file, sizeof file);
      fetched.add({.file = file, .bytes = count < most_pieces ? answer.bytes[count] : 0});
      ++count;
    }
  }
  return fetched;
}

Result<FetchedPieces> receive_answer(const Descriptor& socket) {
  Answer answer;
  iovec place{};
  FilesRoom room{};
  msghdr message = message_with(answer, place, room);
  const ssize_t received = recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
  if (received < 0) return failed("the process that has it does not answer");
  std::size_t count = 0;
  FetchedPieces fetched = files_in(message, answer, count);
  if (received != static_cast<ssize_t>(sizeof answer))
    return Status(Code::unavailable, "device memory: the process that has it has gone away");
  answer.why[sizeof answer.why - 1] = 0;
  if (answer.count == 0) return Status(Code::unavailable, std::string(answer.why));
  if ((message.msg_flags & MSG_CTRUNC) != 0 || count != answer.count)
    return Status(Code::unavailable, "device memory: this process may open no more files");
  return fetched;
}

}  // namespace

FetchedPieces::~FetchedPieces() {
  for (const DevicePiece& piece : pieces_) close(piece.file);
}

Result<FetchedPieces> fetch_pieces(std::uint64_t process, std::uint64_t offer) {
  const Descriptor socket = make_socket();
  const SocketName name = name_of(process);
  if (!socket.is_open() || !limit_waits(socket, answer_s)) return failed("no socket to ask for it by");
  if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0)
    return failed("the process that has it cannot be asked");
  if (!is_of_this_user(socket)) return Status(Code::unavailable, "device memory: it is of another user's process");
  const Question question{.offer = offer};
  if (send(socket.number(), &question, sizeof question, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof question))
    return failed("the process that has it cannot be asked");
  return receive_answer(socket);
}

}  // namespace plait::tl
