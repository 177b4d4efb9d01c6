// Computation of a given length: a fixed amount of work, measured alone once, so that what runs beside it makes it
// longer.
#pragma once

#include <string>
#include <vector>

namespace plait::training {

class ComputeKernel {
 public:
  // "compute": multiplications and additions within the first cache; "memory": a pass over more than the caches hold;
  // "mixed": both in turn. Takes a fifth of a second to measure itself.
  explicit ComputeKernel(const std::string& kind);

  // As much work as takes so many seconds alone.
  void run(double seconds);
  // A value that depends on all of the work, so that no compiler leaves it out.
  float result() const;

 private:
  void unit();

  bool computes_, streams_;
  std::vector<float> small_, large_;
  std::size_t position_ = 0;
  double units_a_second_ = 0;
  double owed_ = 0;  // units, of a part
};

}  // namespace plait::training
