// `plait overlap plan`: groups and shares for a step's reductions, and what the others' ways would take
// (docs/overlap.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "plan/overlap/contention.h"
#include "plan/overlap/layers.h"
#include "plan/overlap/overlap_planner.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// As the user wrote them.
struct OverlapPlanOptions {
  std::string layers, contention, output;
  std::string machine;       // a machine file or name to plan for; empty: the system that this command runs on
  std::string shares;        // "1x0.25,1x1"; empty: those of the contention file
  std::string given_groups;  // an overlap plan whose groups are kept; empty: none
  std::string reduction = "plan";
  double computation = 0;   // seconds of the whole pass; 0: the table's
  double bytes_factor = 1;  // of the gradients
  int groups = 10;
  int chunks = 150;
  int nodes = 0;  // 0: those of the contention file
  bool json = false;
};

// Prints, and writes the plan where it was asked to. Fails (invalid) with the option or the file and what is wrong.
Result<int> plan_overlap(const OverlapPlanOptions& options);

// ---- shared with `plait simulate train`

// "1x0.25,2x1" as shares. Fails (invalid) with the option's name and what was expected.
Result<std::vector<CommunicationShare>> parse_shares(const std::string& text);
// A file that fits the machine to plan for. Fails (invalid) where it is another machine's.
Result<Contention> contention_for(const std::string& path, const std::string& machine);
// The table, scaled as the options say.
Result<LayerTable> scaled_layers(const std::string& path, double computation, double bytes_factor);
// Of which reductions start-up and moved bytes are.
struct ReductionChoice {
  std::string kind;         // "ring": by eq. 4; "plan": of the plans that run
  int nodes = 0;            // 0: those of the contention file
  std::string machine;      // whose plans, on another number of nodes; empty: the default machine's
  double most_bytes = 1e9;  // of a reduction
};
// Over the nodes, each with as many ranks as in the contention file; a ring on one node is over its ranks. Fails
// (invalid) with the option and what was expected.
Result<ReductionCosts> reduction_costs(const ReductionChoice& choice, const Contention& contention);
// Whether groups and chunks are numbers that can be searched, for so many calls.
Status check_search(const GroupSearchOptions& options, std::size_t calls);

}  // namespace plait::tuner
