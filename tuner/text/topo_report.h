// What `plait topo` prints, as text for people and as JSON (docs/topo.md). Pure: no discovery, no MPI.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "topo/discovery.h"
#include "topo/hierarchy.h"
#include "topo/rails.h"
#include "tuner/text/layer.h"

namespace plait::tuner {

// The machine's tree, one line a kind of object: siblings that look alike share a line. Ends with a newline.
std::string machine_text(const MachineTopology& machine);
nlohmann::ordered_json machine_json(const MachineTopology& machine);

// One line a port, or one that says why there is none.
std::string hcas_text(const Result<std::vector<VerbsPort>>& ports);
nlohmann::ordered_json hcas_json(const Result<std::vector<VerbsPort>>& ports);

// One line a rail: what it is, and whether it is used or why not.
std::string rails_text(std::span<const Rail> rails);
nlohmann::ordered_json rails_json(std::span<const Rail> rails);

// "package 0, NUMA node 0, L3 1, core 5"; "not bound" where nothing is known.
std::string binding_text(const Location& location);
nlohmann::ordered_json binding_json(const Location& location);

// The ranks of a job, its levels and vrank order. `locations[r]` is rank r's.
std::string job_text(const Hierarchy& hierarchy, std::span<const Location> locations);
nlohmann::ordered_json job_json(const Hierarchy& hierarchy, std::span<const Location> locations);

// "0-3 8 10 11": runs of three or more as a range.
std::string ranges_text(std::span<const int> numbers);

}  // namespace plait::tuner
