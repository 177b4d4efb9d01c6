// Which calls the test makes: first every combination that matters, in an order that the seed decides, so that a run
// which stops early has made a sample of them; then random ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/differential/trial.h"

namespace plait::test {

struct Scope {
  std::vector<Collective> collectives;
  std::size_t max_bytes = 0;  // of one side of a call on one rank
  bool large = false;         // also tens of MiB
  bool for_host = false;      // only calls that the host copes with
  bool scenes = false;        // few classes of calls at a time
};

// A scene has calls of so many classes (of calls that Plait tries out together, docs/tuning.md), in turn, each often
// enough that its trial comes to an end. Every third scene goes back to the classes of the one before it.
inline constexpr std::size_t scene_classes = 4, scene_visits = 80;
inline constexpr std::size_t scene_length = scene_classes * scene_visits;

class Cases {
 public:
  Cases(const std::vector<Basic>& basics, const std::vector<Party>& parties, Scope scope, std::uint64_t seed);

  // The same on all ranks.
  Case at(std::size_t number) const;
  std::size_t enumerated() const { return list_.size(); }

 private:
  void add_types_and_operators();
  void add_moved_types();
  void add_sizes();
  void add_roots();
  void add_layouts();
  void add_user_operators();
  void add_parties();

  void add(Case test);
  void add_at_sizes(Case test, const std::vector<std::size_t>& counts);
  std::vector<std::size_t> counts_around_borders(const Basic& basic) const;
  Case random_case(Random& random) const;
  Case in_scene(std::size_t number, Random& random) const;
  Case class_of_scene(std::size_t scene, std::size_t index) const;
  Case another_of_class(const Case& model, Random& random) const;
  void choose_elements(Case& test, Random& random) const;
  void choose_root_and_place(Case& test, Random& random) const;
  std::size_t random_count(const Basic& basic, Random& random) const;
  const Basic& basic(const char* name) const;
  bool wanted(Collective collective) const;
  Case fitted(Case test) const;

  const std::vector<Basic>& basics_;
  const std::vector<Party>& parties_;
  Scope scope_;
  std::uint64_t seed_;
  std::vector<std::size_t> movable_, reducible_;  // of basics_
  std::vector<std::size_t> party_ranks_;          // the most that any rank sees
  std::vector<Case> list_;
};

}  // namespace plait::test
