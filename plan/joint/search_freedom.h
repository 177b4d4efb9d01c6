// What a joint search may choose.
#pragma once

namespace plait::plan::joint {

// Less than everything is for comparison (Syndicate, NSDI '23, section 6.4).
enum class OptionFreedom {
  greedy,    // for each operation what is fastest alone
  segments,  // that, or what merely cuts the operation into segments
  all,
};
enum class OrderFreedom { as_issued, fifo, lifo, all };

}  // namespace plait::plan::joint
