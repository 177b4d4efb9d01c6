// What a trial believes of the time of a candidate: how likely it is that a call takes so many times as long as a call
// of the candidate that the class goes by (docs/tuning.md). Plain arithmetic alone: a mathematical library's last bits
// differ between processors, and all ranks must come to the same.
#pragma once

#include <array>

namespace plait::runtime {

// How long a call is expected to take, as a ratio to one of another candidate, and how far that may be from the truth:
// two times in three by no more than so many octaves (factors of two).
struct Prospect {
  double ratio = 1;
  double spread = 0.25;
};

// A distribution over ratios from 1/64 to 16, in steps of a sixteenth of an octave. What lies beyond counts as the end.
class Belief {
 public:
  explicit Belief(Prospect prospect);

  // A call has taken so many times as long, by a clock whose times vary by so many octaves. Both it and what was
  // believed before have long tails: what is unlikely of a candidate is rather a disturbance of the call.
  void see(double ratio, double noise);
  // Likewise of a first call, which may take longer than later ones by some such octaves.
  void see_first(double ratio, double noise, double longer);

  // By how much a call is expected to be shorter than `current` where it is shorter, none being shorter than `least`;
  // and by how much longer where it is longer. Ratios as well.
  double gain(double current, double least) const;
  double loss(double current) const;

  static constexpr int steps_an_octave = 16;

 private:
  static constexpr int lowest_octave = -6, octaves = 10;
  static constexpr int points = octaves * steps_an_octave + 1;
  static const std::array<double, points>& ratios();
  void see_within(double ratio, double noise_if_faster, double noise_if_slower);

  std::array<double, points> likely_;  // sum is 1
};

}  // namespace plait::runtime
