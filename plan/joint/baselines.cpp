#include "plan/joint/baselines.h"

namespace plait::plan::joint {

namespace {

JointPlan searched(const StepGraph& graph, JointSearchOptions options, OptionFreedom freedom, OrderFreedom order) {
  options.options = freedom;
  options.order = order;
  return joint_search(graph, options);
}

}  // namespace

double as_issued(const StepGraph& graph, const JointSearchOptions& options) {
  return searched(graph, options, OptionFreedom::greedy, OrderFreedom::as_issued).seconds;
}

double last_in_first_out(const StepGraph& graph, const JointSearchOptions& options) {
  return searched(graph, options, OptionFreedom::segments, OrderFreedom::lifo).seconds;
}

Baselines baselines(const StepGraph& graph, const JointSearchOptions& options) {
  Baselines all;
  all.as_issued = as_issued(graph, options);
  all.lifo = last_in_first_out(graph, options);
  all.schedule_only = searched(graph, options, OptionFreedom::greedy, OrderFreedom::all);
  all.schedule_and_segments = searched(graph, options, OptionFreedom::segments, OrderFreedom::all).seconds;
  all.execution_only = searched(graph, options, OptionFreedom::all, OrderFreedom::fifo);
  all.joint = searched(graph, options, OptionFreedom::all, OrderFreedom::all);
  return all;
}

}  // namespace plait::plan::joint
