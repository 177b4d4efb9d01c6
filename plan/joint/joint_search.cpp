#include "plan/joint/joint_search.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "plan/joint/search_chain.h"

namespace plait::plan::joint {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::vector<int>> allowed_options(const StepGraph& graph, OptionFreedom freedom,
                                              const std::vector<int>& greedy) {
  std::vector<std::vector<int>> allowed(graph.tasks.size());
  for (std::size_t task = 0; task < graph.tasks.size(); ++task) {
    const std::vector<Option>& options = graph.tasks[task].options;
    for (int option = 0; option < std::ssize(options); ++option) {
      const bool usual = option == greedy[task];
      const bool cut = freedom == OptionFreedom::segments && options[option].segments_only;
      if (usual || cut || freedom == OptionFreedom::all) allowed[task].push_back(option);
    }
  }
  return allowed;
}

// Chains are alike but for their seeds; numbers that follow each other are far apart once they are mixed.
std::uint64_t seed_of(std::uint64_t seed, int chain) {
  std::uint64_t mixed = seed + 0x9e3779b97f4a7c15 * static_cast<std::uint64_t>(chain + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  return mixed ^ (mixed >> 27);
}

std::vector<std::vector<OrderedPiece>> by_channel(const StepGraph& graph, const std::vector<int>& options,
                                                  const std::vector<OrderedPiece>& order) {
  std::vector<std::vector<OrderedPiece>> channels(graph.channels.size());
  for (const OrderedPiece& ordered : order) {
    const Piece& piece = graph.tasks[ordered.task].options[options[ordered.task]].pieces[ordered.piece];
    for (std::size_t channel = 0; channel < channels.size(); ++channel)
      if ((piece.channels >> channel & 1) != 0) channels[channel].push_back(ordered);
  }
  return channels;
}

}  // namespace

JointPlan joint_search(const StepGraph& graph, const JointSearchOptions& options) {
  const std::function<double()> clock = options.clock ? options.clock : steady_seconds;
  const double begun = clock();
  const StepTables tables(graph);
  JointPlan plan;
  Relaxation relaxed = relaxation(graph);
  plan.bound = relaxed.bound;

  const std::vector<int> greedy = greedy_options(graph);
  SearchChain::Setting common{.first = {greedy}, .order = options.order, .clock = clock};
  common.allowed = allowed_options(graph, options.options, greedy);
  if (options.options == OptionFreedom::all) common.first.push_back(rounded(graph, relaxed.mixture));
  common.likely = std::move(relaxed.mixture);
  common.bound = plan.bound.seconds();
  common.seconds = options.seconds;
  const int chains = std::max(1, options.chains);
  if (options.schedules > 0) common.schedules = std::max(1L, options.schedules / chains);
  std::vector<SearchChain::Setting> settings(static_cast<std::size_t>(chains), common);
  std::vector<std::unique_ptr<SearchChain>> searches;
  for (int chain = 0; chain < chains; ++chain) {
    settings[chain].seed = seed_of(options.seed, chain);
    searches.push_back(std::make_unique<SearchChain>(tables, settings[chain]));
  }
  std::vector<std::thread> threads;
  for (int chain = 1; chain < chains; ++chain) threads.emplace_back([&, chain] { searches[chain]->run(); });
  searches[0]->run();
  for (std::thread& thread : threads) thread.join();

  const auto best = std::min_element(searches.begin(), searches.end(), [](const auto& a, const auto& b) {
    return a->best().seconds < b->best().seconds;
  });
  plan.options = (*best)->best().options;
  const bool ordered = options.order == OrderFreedom::all || options.order == OrderFreedom::fifo;
  if (ordered) plan.order = (*best)->best().order;
  plan.channel_order = by_channel(graph, plan.options, plan.order);
  plan.seconds = (*best)->best().seconds;
  plan.greedy_seconds = searches[0]->first_seconds();
  for (const auto& search : searches) plan.schedules += search->schedules();
  plan.spent = clock() - begun;
  return plan;
}

}  // namespace plait::plan::joint
