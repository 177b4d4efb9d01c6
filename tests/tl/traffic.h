// Random messages among some ranks, the same on all of them for a seed: each rank's schedule and buffers, and the check
// of what arrived. The operator is not commutative, so that the sides of recv_reduce matter.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/tl/random_grid.h"
#include "tests/tl/schedule_builder.h"
#include "tl/engine.h"

namespace plait::tl {

struct TrafficOptions {
  std::uint64_t seed = 1;
  int ranks = 2;
  int messages = 40;
  std::size_t element_bytes = 4;   // a multiple of 4; 0: messages of no bytes
  std::vector<std::size_t> sizes;  // bytes, rounded down to elements (at least one), drawn at random
  int most_spans = 5;
  ChannelKind channel = ChannelKind::shm;
};

// left * 31 + right, on 32-bit words.
inline void apply_noncommutative(const Reducer& self, void* result, const void* left, const void* right,
                                 std::size_t count) {
  const std::size_t words = count * self.element_bytes / 4;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t a, b;
    std::memcpy(&a, static_cast<const char*>(left) + 4 * i, 4);
    std::memcpy(&b, static_cast<const char*>(right) + 4 * i, 4);
    a = a * 31 + b;
    std::memcpy(static_cast<char*>(result) + 4 * i, &a, 4);
  }
}

class Traffic {
 public:
  Traffic(const TrafficOptions& options, int rank) : options_(options), rank_(rank), builder_(options.element_bytes) {
    std::mt19937_64 random(options.seed);
    for (int k = 0; k < options.messages; ++k) {
      Message message = draw(random);
      const std::uint64_t cuts = random();
      if (message.from == rank) add_send(message, cuts);
      if (message.to == rank) add_receive(message, cuts);
    }
    schedule_ = builder_.build();
    reducer_.apply = apply_noncommutative;
    reducer_.element_bytes = std::max<std::size_t>(options.element_bytes, 1);
  }

  const BoundSchedule& schedule() const { return schedule_; }

  // Empty, or what is wrong.
  std::string run(Engine& engine) {
    std::array<std::vector<std::byte>, 3> memory;
    Buffers buffers;
    for (std::size_t s = 0; s < 3; ++s) {
      memory[s].assign(end_[s] + 1, std::byte{0xee});
      buffers.base[s] = memory[s].data();
    }
    for (const Fill& fill : fills_) place(buffers, fill);
    std::array<std::vector<std::byte>, 3> expected = memory;
    Buffers ideal;
    for (std::size_t s = 0; s < 3; ++s) ideal.base[s] = expected[s].data();
    for (const Fill& fill : results_) place(ideal, fill);
    if (Status status = engine.run(schedule_, buffers, &reducer_, nullptr); !status.ok()) return status.message();
    for (std::size_t s = 0; s < 3; ++s)
      for (std::size_t i = 0; i < memory[s].size(); ++i)
        if (memory[s][i] != expected[s][i])
          return "seed " + std::to_string(options_.seed) + " rank " + std::to_string(rank_) + ": space " +
                 std::to_string(s) + " byte " + std::to_string(i) + " is wrong";
    return {};
  }

 private:
  using Spans = ScheduleBuilder::Spans;
  using Words = std::vector<std::uint32_t>;
  struct Message {
    int from, to;
    std::size_t bytes;
    bool reduced, incoming_left, in_place;
    std::uint64_t seed;
  };
  struct Fill {
    Spans spans;
    Words words;
  };

  Message draw(std::mt19937_64& random) const {
    Message message{};
    message.from = static_cast<int>(random() % static_cast<std::uint64_t>(options_.ranks));
    message.to = (message.from + 1 + static_cast<int>(random() % static_cast<std::uint64_t>(options_.ranks - 1))) %
                 options_.ranks;
    const std::size_t element = options_.element_bytes;
    const std::size_t wanted = options_.sizes[random() % options_.sizes.size()];
    message.bytes = element == 0 ? 0 : std::max(wanted / element, std::size_t{1}) * element;
    message.reduced = random() % 2 == 0;
    message.incoming_left = random() % 2 == 0;
    message.in_place = random() % 2 == 0;
    message.seed = random();
    return message;
  }

  static Words words(std::size_t bytes, std::uint64_t seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    Words result(bytes / 4);
    for (std::uint32_t& word : result) word = static_cast<std::uint32_t>(random());
    return result;
  }

  // New room in a space, in some spans with gaps between them; now and then one is in a grid.
  Spans room(Space space, std::size_t bytes, std::uint64_t seed) {
    Spans spans;
    if (bytes == 0) return spans;
    std::mt19937_64 random(seed + static_cast<std::uint64_t>(space));
    const std::size_t element = options_.element_bytes;
    std::size_t& end = end_[static_cast<std::size_t>(space)];
    for (std::uint64_t pieces = 1 + random() % static_cast<std::uint64_t>(options_.most_spans); bytes > 0; --pieces) {
      const std::size_t piece = pieces <= 1 ? bytes : (1 + random() % (bytes / element)) * element;
      if (options_.most_spans > 1 && random() % 4 == 0) {
        const std::size_t first = element * (random() % 5);
        const RunGrid grid = random_grid(random, end, first + piece, element);
        spans.push_back({first, piece, space, builder_.add_grid(grid)});
        end = grid.offset_of(first + piece - 1) + 1;
      } else {
        spans.push_back({end, piece, space});
        end += piece;
      }
      end += 4 * (random() % 20);
      bytes -= piece;
    }
    return spans;
  }

  void place(const Buffers& buffers, const Fill& fill) const {
    const std::byte* from = reinterpret_cast<const std::byte*>(fill.words.data());
    for (const BoundSpan& span : fill.spans)
      for (std::uint64_t at = span.offset; at < span.offset + span.bytes; ++at)
        buffers.at(span.space)[span.grid == no_grid ? at : schedule_.grids[span.grid].offset_of(at)] = *from++;
  }

  // A step may wait for earlier ones of this rank. Messages are in one order on all ranks, so nobody waits for ever.
  ScheduleBuilder::Steps some_earlier(std::uint64_t seed) const {
    ScheduleBuilder::Steps steps;
    if (step_count_ > 0 && seed % 3 == 0) steps.push_back(static_cast<std::uint32_t>(seed / 3 % step_count_));
    return steps;
  }

  void add_send(const Message& message, std::uint64_t cuts) {
    const Spans source = room(Space::input, message.bytes, cuts);
    fills_.push_back({source, words(message.bytes, message.seed)});
    builder_.send(options_.channel, message.to, source, some_earlier(cuts));
    ++step_count_;
  }

  void add_receive(const Message& message, std::uint64_t cuts) {
    const Spans destination = room(Space::output, message.bytes, cuts + 1);
    Words result = words(message.bytes, message.seed);
    if (!message.reduced) {
      builder_.recv(options_.channel, message.from, destination, some_earlier(cuts + 1));
    } else {
      const Spans operand = message.in_place ? destination : room(Space::scratch, message.bytes, cuts + 2);
      const Words mine = words(message.bytes, message.seed + 1);
      fills_.push_back({operand, mine});
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = message.incoming_left ? result[i] * 31 + mine[i] : mine[i] * 31 + result[i];
      builder_.recv_reduce(options_.channel, message.from, destination, operand, message.incoming_left,
                           some_earlier(cuts + 1));
    }
    results_.push_back({destination, result});
    ++step_count_;
  }

  TrafficOptions options_;
  int rank_;
  ScheduleBuilder builder_;
  BoundSchedule schedule_;
  Reducer reducer_;
  std::vector<Fill> fills_, results_;
  std::array<std::size_t, 3> end_{};
  std::uint64_t step_count_ = 0;
};

}  // namespace plait::tl
