#include "tuner/text/progress_bar.h"

#include <cmath>
#include <iostream>

namespace plait::tuner {

void print_progress(const std::string& what, double done) {
  constexpr int width = 20;
  const int filled = static_cast<int>(std::lround(done * width));
  std::string bar(static_cast<std::size_t>(filled), '#');
  bar.resize(width, '.');
  std::cerr << "[" << bar << "] " << std::lround(100 * done) << " %  " << what << std::endl;
}

}  // namespace plait::tuner
