#include "plan/joint/baselines.h"

namespace plait::plan::joint {

Baselines baselines(const StepGraph& graph, const JointSearchOptions& options) {
  const auto searched = [&](OptionFreedom freedom, OrderFreedom order) {
    JointSearchOptions limited = options;
    limited.options = freedom;
    limited.order = order;
    return joint_search(graph, limited);
  };
  Baselines all;
  all.as_issued = searched(OptionFreedom::greedy, OrderFreedom::as_issued).seconds;
  all.lifo = searched(OptionFreedom::segments, OrderFreedom::lifo).seconds;
  all.schedule_only = searched(OptionFreedom::greedy, OrderFreedom::all);
  all.schedule_and_segments = searched(OptionFreedom::segments, OrderFreedom::all).seconds;
  all.execution_only = searched(OptionFreedom::all, OrderFreedom::fifo);
  all.joint = searched(OptionFreedom::all, OrderFreedom::all);
  return all;
}

}  // namespace plait::plan::joint
