// Random shared-memory collectives of all ranks of a node, the same on all of them for a seed: each rank's schedule and
// memory, and the check of what it got against the plain definition of each kind. The operators do not commute, so that
// the order of the members matters.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tests/differential/random.h"
#include "tests/tl/schedule_builder.h"
#include "tl/engine.h"
#include "tl/shm/peer_buffers.h"

namespace plait::tl {

inline constexpr int collective_kinds = 8;

// Each byte is a linear map modulo 16 (an odd slope in the high half, an offset in the low one); maps are applied one
// after the other. Associative, of elements of any size, and neither order nor repetition goes unseen.
inline std::byte compose_bytes(std::byte left, std::byte right) {
  const auto l = std::to_integer<unsigned>(left), r = std::to_integer<unsigned>(right);
  return static_cast<std::byte>((((l >> 4) * (r >> 4)) & 15) << 4 | (((l & 15) * (r >> 4) + (r & 15)) & 15));
}

inline void apply_compose_bytes(const Reducer& self, void* result, const void* left, const void* right,
                                std::size_t count) {
  auto* to = static_cast<std::byte*>(result);
  const auto *l = static_cast<const std::byte*>(left), *r = static_cast<const std::byte*>(right);
  for (std::size_t i = 0; i < count * self.element_bytes; ++i) to[i] = compose_bytes(l[i], r[i]);
}

// The memory of all ranks. Of the three spaces of each rank the output's is private, the others are shared: in this
// process, or mapped at the same place in processes that are forked later.
class CollectivePools {
 public:
  static constexpr std::size_t bytes = std::size_t{32} << 20;  // of each space

  explicit CollectivePools(int ranks) : length_(static_cast<std::size_t>(ranks) * 3 * bytes) {
    void* mapped = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
  }
  CollectivePools(const CollectivePools&) = delete;
  CollectivePools& operator=(const CollectivePools&) = delete;
  ~CollectivePools() {
    if (base_ != nullptr) munmap(base_, length_);
  }

  bool ok() const { return base_ != nullptr; }
  std::byte* pool(int rank, Space space) const {
    return base_ + (static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(space)) * bytes;
  }

 private:
  std::size_t length_;
  std::byte* base_;
};

// Names shared memory by its address.
class PoolBuffers final : public PeerBuffers {
 public:
  PoolBuffers(const CollectivePools& pools, int rank) : pools_(pools), rank_(rank) {}

  std::optional<std::uint64_t> name(const std::byte* address, std::size_t bytes) const override {
    const auto inside = [&](Space space) {
      const std::byte* pool = pools_.pool(rank_, space);
      return address >= pool && address + bytes <= pool + CollectivePools::bytes;
    };
    if (!inside(Space::input) && !inside(Space::scratch)) return std::nullopt;
    return reinterpret_cast<std::uintptr_t>(address);
  }
  std::byte* find(std::size_t, std::uint64_t name, std::size_t) const override {
    found_.fetch_add(1, std::memory_order_relaxed);
    return reinterpret_cast<std::byte*>(name);
  }
  std::size_t found() const { return found_; }

 private:
  const CollectivePools& pools_;
  int rank_;
  mutable std::atomic<std::size_t> found_ = 0;
};

enum class Draws {
  anything,
  at_once,        // some all_gathers wait for lower ranks only, which sizes for areas allow
  from_first,     // only broadcasts from rank 0, which waits for nobody
  through_shared  // only the longest broadcasts, in memory that the others share
};

// One call: one or several shared-memory collectives, without order among them besides their own.
class CollectiveTraffic {
 public:
  // `sizes`: bytes of a vector, of all pieces together, or of one pair's, rounded down to elements.
  CollectiveTraffic(std::uint64_t seed, int rank, int ranks, const std::vector<std::size_t>& sizes,
                    Draws draws = Draws::anything)
      : seed_(seed), rank_(rank), ranks_(static_cast<std::size_t>(ranks)), draws_(draws), random_(seed) {
    constexpr std::size_t elements[] = {1, 1, 4, 4, 8, 16, 24, 4096};
    element_ = elements[random_.below(std::size(elements))];
    predefined_ = element_ == 4 && random_.one_in(2);
    past_caches_ = random_.one_in(4);
    ScheduleBuilder builder(element_);
    for (int steps = random_.one_in(2) ? 1 : random_.between(2, 4); steps > 0; --steps) add_step(builder, sizes);
    schedule_ = builder.build();
    if (past_caches_) schedule_.output_bytes = std::uint64_t{8} << 20;
  }

  std::string describe() const { return "seed " + std::to_string(seed_) + description_; }

  // Empty, or what is wrong.
  std::string run(Engine& engine, const CollectivePools& pools) const {
    Buffers buffers;
    std::array<std::vector<std::byte>, 3> expected;
    for (std::size_t s = 0; s < 3; ++s) {
      buffers.base[s] = pools.pool(rank_, static_cast<Space>(s));
      if (end_[s] + guard > CollectivePools::bytes) return describe() + ": the pools are too small";
      std::memset(buffers.base[s], std::to_integer<int>(untouched), end_[s] + guard);
      expected[s].assign(end_[s] + guard, untouched);
    }
    const Buffers ideal{{expected[0].data(), expected[1].data(), expected[2].data()}};
    for (const Content& content : given_) place(buffers, content), place(ideal, content);
    for (const Content& content : taken_) place(ideal, content);
    const Reducer reducer = predefined_ ? make_reducer(Op::sum, Element::u32) : composing();
    if (Status status = engine.run(schedule_, buffers, &reducer, nullptr); !status.ok()) return status.message();
    for (std::size_t s = 0; s < 3; ++s) {
      const auto wrong = std::mismatch(expected[s].begin(), expected[s].end(), buffers.base[s]).first;
      if (wrong != expected[s].end())
        return describe() + ", rank " + std::to_string(rank_) + ": space " + std::to_string(s) + " byte " +
               std::to_string(wrong - expected[s].begin()) + " is wrong";
    }
    return {};
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr std::byte untouched{0xee};
  using Random = test::Random;
  using Bytes = std::vector<std::byte>;
  using Spans = ScheduleBuilder::Spans;
  struct Content {
    Spans spans;
    Bytes bytes;
  };
  // One step, as all ranks know it.
  struct Drawn {
    BoundShmCollective collective;
    std::uint64_t seed = 0;
    bool contiguous = false, shared = false;  // on all ranks
  };

  Reducer composing() const {
    Reducer reducer;
    reducer.apply = apply_compose_bytes;
    reducer.element_bytes = element_;
    return reducer;
  }

  Drawn draw(const std::vector<std::size_t>& sizes) {
    Drawn drawn;
    BoundShmCollective& collective = drawn.collective;
    collective.kind = static_cast<ShmCollectiveKind>(random_.below(collective_kinds));
    collective.members.resize(ranks_);
    std::iota(collective.members.begin(), collective.members.end(), 0);
    for (std::size_t i = ranks_; i > 1; --i) std::swap(collective.members[i - 1], collective.members[random_.below(i)]);
    collective.root = static_cast<std::int32_t>(random_.below(ranks_));
    if (draws_ == Draws::through_shared) collective.kind = ShmCollectiveKind::broadcast;
    if (draws_ == Draws::from_first) {
      collective.kind = ShmCollectiveKind::broadcast;
      collective.root = static_cast<std::int32_t>(std::find(collective.members.begin(), collective.members.end(), 0) -
                                                  collective.members.begin());
    }
    const std::size_t any_size = sizes[random_.below(sizes.size())];
    collective.bytes = (draws_ == Draws::through_shared ? std::ranges::max(sizes) : any_size) / element_ * element_;
    if (has_pieces(collective.kind)) collective.piece_offsets = draw_pieces(collective.bytes);
    if (draws_ == Draws::at_once && collective.kind == ShmCollectiveKind::all_gather)
      collective.lower_only = random_.one_in(2);
    const bool pairs = collective.kind == ShmCollectiveKind::all_to_all;
    if (pairs && collective.bytes > 16 * 1024) collective.bytes = collective.bytes / ranks_ / element_ * element_;
    collective.self = static_cast<std::int32_t>(std::find(collective.members.begin(), collective.members.end(), rank_) -
                                                collective.members.begin());
    drawn.seed = random_.next();
    drawn.contiguous = random_.one_in(2) || draws_ == Draws::through_shared;
    drawn.shared = random_.one_in(2) || draws_ == Draws::through_shared;
    description_ += "; kind " + std::to_string(static_cast<int>(collective.kind)) + " of " +
                    std::to_string(collective.bytes) + " bytes, root " + std::to_string(collective.root);
    return drawn;
  }

  // Equal ones, any ones, or one member has all.
  std::vector<std::uint64_t> draw_pieces(std::uint64_t bytes) {
    std::vector<std::uint64_t> at(ranks_ + 1);
    const std::uint64_t elements = bytes / element_;
    const std::size_t way = random_.below(3), owner = random_.below(ranks_);
    for (std::size_t i = 1; i < ranks_; ++i)
      at[i] = way == 0 ? elements * i / ranks_ : way == 1 ? random_.below(elements + 1) : (i > owner ? elements : 0);
    at[ranks_] = elements;
    std::sort(at.begin(), at.end());
    for (std::uint64_t& offset : at) offset *= element_;
    return at;
  }

  static std::uint64_t piece(const BoundShmCollective& collective, std::size_t member) {
    return collective.piece_offsets[member + 1] - collective.piece_offsets[member];
  }

  bool gives(const BoundShmCollective& collective, std::size_t member) const {
    const bool from_root =
        collective.kind == ShmCollectiveKind::broadcast || collective.kind == ShmCollectiveKind::scatter;
    return !from_root || member == static_cast<std::size_t>(collective.root);
  }

  Bytes given(const Drawn& drawn, std::size_t member) const {
    const BoundShmCollective& collective = drawn.collective;
    if (!gives(collective, member)) return {};
    const bool own_piece =
        collective.kind == ShmCollectiveKind::all_gather || collective.kind == ShmCollectiveKind::gather;
    const bool pairs = collective.kind == ShmCollectiveKind::all_to_all;
    Bytes bytes(own_piece ? piece(collective, member) : pairs ? collective.bytes * ranks_ : collective.bytes);
    Random random(test::derive(drawn.seed, member, 7));
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t word = random.next() | 0x1010101010101010u;  // odd slopes
      std::memcpy(&bytes[i], &word, std::min<std::size_t>(8, bytes.size() - i));
    }
    return bytes;
  }

  // Of all members' contributions, [from, from + bytes).
  Bytes reduced(const Drawn& drawn, std::uint64_t from, std::uint64_t bytes) const {
    Bytes result;
    const Reducer reducer = predefined_ ? make_reducer(Op::sum, Element::u32) : composing();
    for (std::size_t member = 0; member < ranks_; ++member) {
      const Bytes all = given(drawn, member);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
      const Bytes more(begin, begin + static_cast<std::ptrdiff_t>(bytes));
      if (member == 0)
        result = more;
      else if (predefined_)
        reducer.kernel(result.data(), result.data(), more.data(), bytes / element_);
      else
        apply_compose_bytes(reducer, result.data(), result.data(), more.data(), bytes / element_);
    }
    return result;
  }

  static Bytes cut(const Bytes& all, std::uint64_t from, std::uint64_t bytes) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
  }

  Bytes taken(const Drawn& drawn) const {
    const BoundShmCollective& collective = drawn.collective;
    const auto self = static_cast<std::size_t>(collective.self), root = static_cast<std::size_t>(collective.root);
    switch (collective.kind) {
      case ShmCollectiveKind::all_reduce:
        return reduced(drawn, 0, collective.bytes);
      case ShmCollectiveKind::reduce:
        return self == root ? reduced(drawn, 0, collective.bytes) : Bytes();
      case ShmCollectiveKind::reduce_scatter:
        return reduced(drawn, collective.piece_offsets[self], piece(collective, self));
      case ShmCollectiveKind::broadcast:
        return self == root ? Bytes() : given(drawn, root);
      case ShmCollectiveKind::scatter:
        return collective.takes_own ? cut(given(drawn, root), collective.piece_offsets[self], piece(collective, self))
                                    : Bytes();
      default:
        return collected(drawn);
    }
  }

  Bytes collected(const Drawn& drawn) const {
    const BoundShmCollective& collective = drawn.collective;
    const auto self = static_cast<std::size_t>(collective.self);
    Bytes bytes;
    if (collective.kind == ShmCollectiveKind::gather && collective.self != collective.root) return bytes;
    for (std::size_t member = 0; member < ranks_; ++member) {
      if (member == self && !collective.takes_own) continue;
      Bytes more = given(drawn, member);
      if (collective.lower_only && collective.members[member] > rank_) std::ranges::fill(more, untouched);
      if (collective.kind == ShmCollectiveKind::all_to_all) more = cut(more, self * collective.bytes, collective.bytes);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }

  // What is a matter of each rank alone.
  void add_step(ScheduleBuilder& builder, const std::vector<std::size_t>& sizes) {
    Drawn drawn = draw(sizes);
    BoundShmCollective& collective = drawn.collective;
    Random own(test::derive(drawn.seed, static_cast<std::uint64_t>(rank_), 1));
    const bool chooses =
        collective.kind == ShmCollectiveKind::all_gather ||
        ((collective.kind == ShmCollectiveKind::gather || collective.kind == ShmCollectiveKind::scatter) &&
         collective.self == collective.root);
    if (chooses) collective.takes_own = !own.one_in(3);
    const Bytes give = given(drawn, static_cast<std::size_t>(collective.self)), take = taken(drawn);
    const auto room = [&](std::size_t bytes) {
      const Space space =
          drawn.shared ? (own.one_in(2) ? Space::input : Space::scratch) : static_cast<Space>(own.below(3));
      return make_room(space, bytes, drawn.contiguous || own.one_in(2) ? 1 : own.between(2, 4), own);
    };
    Spans source, destination;
    if (own.one_in(3) && lies_in_place(drawn, give, take, room, source, destination)) {
    } else {
      source = room(give.size());
      destination = room(take.size());
    }
    given_.push_back({source, give});
    taken_.push_back({destination, take});
    builder.collective(collective, source, destination);
  }

  // Where one buffer serves for both.
  template <class Room>
  bool lies_in_place(const Drawn& drawn, const Bytes& give, const Bytes& take, Room&& room, Spans& source,
                     Spans& destination) const {
    const BoundShmCollective& collective = drawn.collective;
    if (give.empty() || take.empty()) return false;
    const auto self = static_cast<std::size_t>(collective.self);
    switch (collective.kind) {
      case ShmCollectiveKind::all_reduce:
      case ShmCollectiveKind::reduce:
        source = destination = room(give.size());
        return true;
      case ShmCollectiveKind::reduce_scatter:
      case ShmCollectiveKind::scatter:
        source = room(give.size());
        destination = cut(source, collective.piece_offsets[self], piece(collective, self));
        return true;
      case ShmCollectiveKind::all_gather:
      case ShmCollectiveKind::gather:
        if (!collective.takes_own) return false;
        destination = room(take.size());
        source = cut(destination, collective.piece_offsets[self], piece(collective, self));
        return true;
      default:
        return false;
    }
  }

  static Spans cut(const Spans& all, std::uint64_t from, std::uint64_t bytes) {
    Spans part;
    for (const BoundSpan& span : all) {
      if (bytes == 0) break;
      if (from >= span.bytes) {
        from -= span.bytes;
        continue;
      }
      const std::uint64_t here = std::min(bytes, span.bytes - from);
      part.push_back({span.offset + from, here, span.space});
      bytes -= here;
      from = 0;
    }
    return part;
  }

  // New room in a space, in some spans with gaps between them.
  Spans make_room(Space space, std::size_t bytes, int pieces, Random& random) {
    Spans spans;
    std::size_t& end = end_[static_cast<std::size_t>(space)];
    for (; bytes > 0; --pieces) {
      end += random.one_in(2) ? 0 : random.below(80);
      const std::size_t piece = pieces <= 1 ? bytes : (1 + random.below(bytes / element_)) * element_;
      spans.push_back({end, piece, space});
      end += piece;
      bytes -= piece;
    }
    end += guard;
    return spans;
  }

  static void place(const Buffers& buffers, const Content& content) {
    const std::byte* from = content.bytes.data();
    for (const BoundSpan& span : content.spans) {
      std::memcpy(buffers.at(span.space) + span.offset, from, span.bytes);
      from += span.bytes;
    }
  }

  std::uint64_t seed_;
  int rank_;
  std::size_t ranks_;
  Draws draws_;
  Random random_;
  std::size_t element_ = 1;
  bool predefined_ = false, past_caches_ = false;
  std::string description_;
  BoundSchedule schedule_;
  std::vector<Content> given_, taken_;
  std::array<std::size_t, 3> end_{};
};

}  // namespace plait::tl
