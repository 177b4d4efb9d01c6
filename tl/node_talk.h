// An operation that all ranks of a node do together, of which the channel between them only carries a few words: the
// data lie where no processor may touch them. Round by round each rank says something and hears what all have said;
// what follows from that is the same on all of them. In the end each may work on memory of the others, until all have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"

namespace plait::tl {

// One rank's part in one such operation. Called by one thread at a time; nothing blocks but abandon().
class NodeTalk {
 public:
  static constexpr std::size_t word_bytes = 256;
  using Word = std::span<std::byte, word_bytes>;
  // By member, in the order of the step's members; valid until hear() returns.
  using Words = std::span<const std::byte* const>;
  enum class Then : std::uint8_t {
    speak,  // another round
    work,   // on memory of the others: work() until it is done; then until all have done theirs
    end,    // nobody touches memory of another one
  };

  virtual ~NodeTalk() = default;
  // What this rank says in round 0, 1, ...: false where it cannot say it yet, and is to be asked again. Nobody reads
  // the word before it is true. A failure is one of the channel.
  virtual Result<bool> speak(unsigned round, Word word) = 0;
  // All ranks hear the same and must come to the same.
  virtual Result<Then> hear(unsigned round, Words words) = 0;
  // After `work`: begins this rank's part.
  virtual Status begin_work() = 0;
  // A glance: whether this rank has done its part.
  virtual Result<bool> work() = 0;
  // After a failure of whomever: returns once this rank's work, if it has begun, does not touch memory any more.
  virtual void abandon() noexcept = 0;
};

}  // namespace plait::tl
