#include "plugin/ucc/oob/gather_oob.h"

#include <algorithm>
#include <cstring>

#include "core/attempt.h"
#include "core/reduction.h"

namespace plait::plugin {
namespace {

// Nothing is thrown from where the others go other ways already.
Status failed(Code code, std::string_view what, int missing) noexcept {
  try {
    return {code, "the ranks could not " + std::string(what) + ": " +
                      (missing < 0 ? "the exchange out of band failed"
                                   : "rank " + std::to_string(missing) + " is out of memory")};
  } catch (const std::exception&) {
    return {code, "out of memory"};
  }
}

// The channels tell of a failure.
class SilentNotice final : public FailureNotice {
 public:
  void look() override {}
  void tell(const Status&) noexcept override { told_ = true; }
};

// A piece of all ranks' texts is held at once.
std::size_t piece_bytes(int ranks) {
  constexpr std::size_t least = 4096, most = std::size_t{1} << 20, all = std::size_t{64} << 20;
  return std::clamp(all / static_cast<std::size_t>(ranks), least, most);
}

}  // namespace

GatherOob::GatherOob(Gathering& gathering)
    : gathering_(gathering), blocks_(static_cast<std::size_t>(std::max(gathering.ranks(), 1))) {}

int GatherOob::step(const Block& mine) noexcept {
  if (!gathering_.run(&mine, sizeof mine, blocks_.data())) return broken;
  const auto missing = std::ranges::find_if(blocks_, [](const Block& block) { return block.missing != 0; });
  return missing == blocks_.end() ? nobody : static_cast<int>(missing - blocks_.begin());
}

Status GatherOob::gather(const void* mine, std::size_t bytes, std::byte* all, std::string_view what) {
  Block block;
  const bool fits = bytes <= block.data.size();
  if (fits && bytes > 0) std::memcpy(block.data.data(), mine, bytes);
  if (const int missing = step(block); missing != nobody) return failed(Code::peer_failed, what, missing);
  if (!fits) return gathering_.run(mine, bytes, all) ? Status() : failed(Code::peer_failed, what, broken);
  for (std::size_t rank = 0; bytes > 0 && rank < blocks_.size(); ++rank)
    std::memcpy(all + rank * bytes, blocks_[rank].data.data(), bytes);
  return {};
}

Status GatherOob::meet(std::string_view what) { return gather(nullptr, 0, nullptr, what); }

Status GatherOob::gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) {
  return gather(mine, bytes, static_cast<std::byte*>(all), what);
}

Status GatherOob::gather_all_unless(const std::function<Status()>& failed_before, const void* mine, std::size_t bytes,
                                    void* all, std::string_view what) {
  if (Status failure = failed_before(); !failure.ok()) return failure;
  return gather_all(mine, bytes, all, what);
}

Status GatherOob::tell_all(void* data, std::size_t bytes, std::string_view what) {
  std::vector<std::byte> all(bytes * blocks_.size());
  if (Status met = gather(data, bytes, all.data(), what); !met.ok()) return met;
  if (rank() != 0 && bytes > 0) std::memcpy(data, all.data(), bytes);
  return {};
}

Status GatherOob::reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                             std::string_view what) {
  const std::size_t bytes = count * extent(element);
  const Reducer reducer = make_reducer(op, element);
  if (reducer.kernel == nullptr) return {Code::internal, "no such reduction out of band"};
  std::vector<std::byte> brought(bytes * blocks_.size());
  if (Status met = gather(mine, bytes, brought.data(), what); !met.ok()) return met;
  auto* result = static_cast<std::byte*>(all);
  std::memcpy(result, brought.data(), bytes);
  for (std::size_t other = 1; other < blocks_.size(); ++other)
    combine(reducer, result, result, brought.data() + other * bytes, count);
  return {};
}

void GatherOob::gather_texts(const std::string& mine, const std::function<void(int, std::string)>& take) {
  const std::size_t piece = piece_bytes(ranks());
  std::vector<std::uint64_t> lengths;
  std::vector<std::byte> own, pieces;
  std::vector<std::string> texts;
  const Status room = attempt([&]() -> Status {
    lengths.resize(blocks_.size());
    own.resize(piece);
    pieces.resize(piece * blocks_.size());
    texts.resize(blocks_.size());
    return {};
  });
  if (!go_on_together(room).ok()) return;
  const std::uint64_t length = mine.size();
  if (!gather(&length, sizeof length, reinterpret_cast<std::byte*>(lengths.data()), "bring texts together").ok())
    return;
  const std::uint64_t longest = *std::ranges::max_element(lengths);
  for (std::uint64_t done = 0; done < longest; done += piece) {
    if (done < length) std::memcpy(own.data(), mine.data() + done, std::min<std::uint64_t>(piece, length - done));
    if (!gathering_.run(own.data(), piece, pieces.data())) return;
    for (std::size_t from = 0; rank() == 0 && from < texts.size(); ++from) {
      if (done >= lengths[from]) continue;
      const std::uint64_t bytes = std::min<std::uint64_t>(piece, lengths[from] - done);
      const char* begin = reinterpret_cast<const char*>(pieces.data() + from * piece);
      static_cast<void>(attempt([&]() -> Status {
        texts[from].append(begin, bytes);
        return {};
      }));
    }
  }
  for (std::size_t from = 0; rank() == 0 && from < texts.size(); ++from)
    static_cast<void>(attempt([&]() -> Status {
      take(static_cast<int>(from), std::move(texts[from]));
      return {};
    }));
}

void GatherOob::withdraw() noexcept {
  const Block block{.missing = 1, .data = {}};
  static_cast<void>(step(block));
}

Status GatherOob::go_on_together(const Status& mine) noexcept {
  const int missing = step({.missing = mine.ok() ? 0u : 1u, .data = {}});
  if (!mine.ok()) return {mine.code(), "out of memory"};
  return missing == nobody ? Status() : failed(Code::unavailable, "go on together", missing);
}

std::unique_ptr<FailureNotice> GatherOob::make_notice(std::uint64_t, std::vector<int>) {
  return std::make_unique<SilentNotice>();
}

}  // namespace plait::plugin
