// All-gathers as a step that blocks: carried by the thread that asks, or by another one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "plugin/layer.h"
#include "plugin/ucc/oob/all_gather.h"

namespace plait::plugin {

class Gathering {
 public:
  virtual ~Gathering() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // False where it failed. `all`: of all ranks, in their order. Throws nothing.
  virtual bool run(const void* mine, std::size_t bytes, void* all) noexcept = 0;
};

// By the asking thread itself.
class OwnGathering final : public Gathering {
 public:
  explicit OwnGathering(AllGather& carrier) : carrier_(carrier) {}
  int rank() const override { return carrier_.rank(); }
  int ranks() const override { return carrier_.ranks(); }
  bool run(const void* mine, std::size_t bytes, void* all) noexcept override;

 private:
  AllGather& carrier_;
};

// Of one rank that stands for all of them, as nobody can be asked any more: each has brought what it has.
class MirrorGathering final : public Gathering {
 public:
  explicit MirrorGathering(int ranks) : ranks_(ranks) {}
  int rank() const override { return 0; }
  int ranks() const override { return ranks_; }
  bool run(const void* mine, std::size_t bytes, void* all) noexcept override;

 private:
  const int ranks_;
};

// By a thread that has other things to do as well and calls turn(): what is out of band may be for that one alone.
class HandedGathering final : public Gathering {
 public:
  explicit HandedGathering(AllGather& carrier) : carrier_(carrier) {}
  int rank() const override { return carrier_.rank(); }
  int ranks() const override { return carrier_.ranks(); }
  bool run(const void* mine, std::size_t bytes, void* all) noexcept override;

  // Moves on what is asked for. Does not block.
  void turn();
  // Whoever carries it goes away: what is asked for fails, from now on. Precondition: nothing is under way.
  void close();

 private:
  enum class State : std::uint8_t { idle, wanted, under_way, done, failed };

  AllGather& carrier_;
  std::mutex guard_;
  std::condition_variable changed_;
  State state_ = State::idle;
  bool closed_ = false;
  const void* mine_ = nullptr;
  std::size_t bytes_ = 0;
  void* all_ = nullptr;
};

}  // namespace plait::plugin
