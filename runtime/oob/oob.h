// Out of band: what the ranks of a team do together before they have channels of their own, and what they tell each
// other when those fail. Whoever brings the ranks (an MPI, UCC, a test with ranks in one process) implements it.
//
// Each step is a meeting of all ranks first, from which one may be missing that cannot go on: it withdraws, and the
// others' step fails with its rank (Code::peer_failed), instead of waiting for it for ever. All ranks take the same
// steps in the same order. Steps block, and are not thread-safe; they throw nothing but where memory is short before
// the rank has taken part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/element.h"
#include "core/status.h"
#include "runtime/layer.h"
#include "runtime/oob/failure_notice.h"

namespace plait::runtime {

class HostMessages;  // host_messages.h

class Oob {
 public:
  virtual ~Oob() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // `what` the ranks do by the step, for the failure: "exchange their locations".
  virtual Status meet(std::string_view what) = 0;
  // `bytes` of each rank, in the order of ranks.
  virtual Status gather_all(const void* mine, std::size_t bytes, void* all, std::string_view what) = 0;
  // What rank 0 has.
  virtual Status tell_all(void* data, std::size_t bytes, std::string_view what) = 0;
  // As gather_all(), where a rank may not come because it has failed: `failed` is asked until all have come, and what
  // it says ends the step. Then the oob is good for nothing more. Throws where memory is short, before the rank takes
  // part.
  virtual Status gather_all_unless(const std::function<Status()>& failed, const void* mine, std::size_t bytes,
                                   void* all, std::string_view what) = 0;
  // Texts of any length: on rank 0 calls `take(rank, text)` for each rank in turn, so that only one is held at a time.
  // Throws nothing: what rank 0 has no memory for is left out, and so is what `take` throws at.
  virtual void gather_texts(const std::string& mine, const std::function<void(int rank, std::string text)>& take) = 0;
  // For integers and doubles, and sum, min, max and band.
  virtual Status reduce_all(const void* mine, void* all, std::size_t count, Element element, Op op,
                            std::string_view what) = 0;

  // This rank takes no further step: the others learn of it where they meet next, if they do: it does not wait for
  // them. Needs no memory of ours.
  virtual void withdraw() noexcept = 0;
  // Ok on all ranks or on none: after what each does by itself, before what they do together by other ways.
  virtual Status go_on_together(const Status& mine) noexcept = 0;
  // For the end of one in which something is still under way that nobody waits for: what it works on is never freed.
  virtual void abandon() noexcept = 0;

  // A word for one rank, which finds it when it looks, and from then on each time. Needs no memory of ours. Afterwards
  // the oob is good for nothing more, on both ranks.
  virtual void leave_word(int rank) noexcept = 0;
  // Also moves on what is still on its way out of band.
  virtual bool word_left() = 0;

  // By which this rank tells all but the `near` ranks that it has failed, and hears of them; it is one of the near
  // ones itself. `number`: of the team, the same on all ranks. Used within the life of the oob.
  virtual std::unique_ptr<FailureNotice> make_notice(std::uint64_t number, std::vector<int> near) = 0;

  // What the ranks of one `colour` (not negative) do among themselves, in their order; a rank without one gets none.
  // A step of all ranks. Fails (unsupported) on all of them where whoever brings the ranks has no such.
  virtual Status part(std::optional<int> colour, std::unique_ptr<Oob>& made, std::string_view what) {
    (void)colour, (void)made, (void)what;
    return {Code::unsupported, "some of the ranks alone cannot meet"};
  }

  // Messages that the ranks have besides; nullptr: none.
  virtual HostMessages* messages() { return nullptr; }
};

// What a rank has to say; where it has no memory for that, nothing: the others wait for its text.
template <class Make>
std::string text_or_nothing(Make&& make) noexcept {
  try {
    return make();
  } catch (const std::exception&) {
    return {};
  }
}

// The element of a C++ type.
template <class T>
constexpr Element element_of_type() {
  if constexpr (std::is_same_v<T, double>) {
    return Element::f64;
  } else {
    static_assert(std::is_integral_v<T>);
    if constexpr (sizeof(T) == 1)
      return std::is_signed_v<T> ? Element::i8 : Element::u8;
    else if constexpr (sizeof(T) == 4)
      return std::is_signed_v<T> ? Element::i32 : Element::u32;
    else
      return std::is_signed_v<T> ? Element::i64 : Element::u64;
  }
}

template <class T, std::size_t count>
Status reduce_all(Oob& oob, const std::array<T, count>& mine, std::array<T, count>& all, Op op, std::string_view what) {
  return oob.reduce_all(mine.data(), all.data(), count, element_of_type<T>(), op, what);
}

}  // namespace plait::runtime
