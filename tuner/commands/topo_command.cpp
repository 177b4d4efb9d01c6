// plait topo: the machine, its HCAs, its GPUs and, under mpirun, the job's hierarchy. Output: docs/topo.md.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "topo/discovery.h"
#include "topo/gpus.h"
#include "topo/hierarchy.h"
#include "tuner/commands/command.h"
#include "tuner/measure/job_locations.h"
#include "tuner/measure/session.h"
#include "tuner/text/gpu_report.h"
#include "tuner/text/topo_report.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

void print(const Json& json) { std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n'; }

Result<GpuTopology> gpus_of_this_host() {
  const auto gpus = system_gpus()->gpus();
  if (!gpus.ok()) return gpus.status();
  return locate_gpus({}, *gpus);
}

// This host in both forms. It travels as JSON, so that rank 0 can print what only the other nodes can see.
Result<Json> describe_this_host() {
  const auto machine = load_machine({});
  if (!machine.ok()) return machine.status();
  const auto ports = system_verbs()->ports();
  std::vector<Rail> rails = rails_of(ports.ok() ? *ports : std::vector<VerbsPort>(), network_interfaces());
  if (Status status = choose_rails(rails, load_config_from_process().config.rails); !status.ok()) return status;
  const auto gpus = gpus_of_this_host();
  return Json{{"machine_text", machine_text(*machine)},
              {"hcas_text", hcas_text(ports)},
              {"rails_text", rails_text(rails)},
              {"gpus_text", gpus_text(gpus)},
              {"machine", machine_json(*machine)},
              {"hcas", hcas_json(ports)},
              {"rails", rails_json(rails)},
              {"gpus", gpus_json(gpus)}};
}

// On rank 0 a description of every node, from that node's first rank; nothing elsewhere. A node that cannot describe
// itself says so in its place: the others still count.
std::vector<Json> gather_nodes(MpiSession& session, const Hierarchy& hierarchy) {
  std::string mine;
  const int node = hierarchy.node_of(session.rank());
  if (hierarchy.ranks_on_node(node).front() == session.rank()) {
    const auto described = describe_this_host();
    const Json json = described.ok() ? *described
                                     : Json{{"machine_text", described.status().message() + '\n'},
                                            {"hcas_text", ""},
                                            {"rails_text", ""},
                                            {"gpus_text", ""},
                                            {"machine", nullptr},
                                            {"hcas", nullptr},
                                            {"rails", nullptr},
                                            {"gpus", nullptr}};
    mine = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::vector<Json> nodes;
  const auto texts = session.gather_text_at_root(mine);
  for (int index = 0; !texts.empty() && index < hierarchy.nodes(); ++index) {
    nodes.push_back(Json::parse(texts[hierarchy.ranks_on_node(index).front()]));
  }
  return nodes;
}

// Nodes whose text is the same share one heading.
void print_grouped(const std::vector<Json>& nodes, const char* member, const std::string& title) {
  std::vector<std::string> texts;
  std::map<std::string, std::vector<int>> holders;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto text = nodes[node].at(member).get<std::string>();
    if (holders[text].empty()) texts.push_back(text);
    holders[text].push_back(static_cast<int>(node));
  }
  for (const auto& text : texts) {
    std::cout << '\n'
              << title << " of node" << (holders[text].size() == 1 ? " " : "s ") << ranges_text(holders[text]) << '\n'
              << text;
  }
}

class TopoCommand : public Command {
 public:
  std::string_view name() const override { return "topo"; }
  std::string_view summary() const override {
    return "print this machine, its HCAs, rails and GPUs and, under mpirun, the hierarchy of the job";
  }

  void add_options(CommandLine line) override {
    line.flag("--json", json_, "print JSON (docs/topo.md)");
    Option synthetic = line.option("--synthetic", synthetic_,
                                   "another machine: an hwloc synthetic description, such as "
                                   "\"package:2 numa:2 l3:1 core:8 pu:2\"");
    Option xml = line.option("--xml", xml_, "another machine: an hwloc XML file, as lstopo --of xml writes it");
    synthetic.excludes(xml);
    line.option("--gpus", gpus_,
                "with --xml or --synthetic: that machine's GPUs, as `plait topo --json` prints them there");
  }

  Result<int> run() override {
    if (gpus_ && !synthetic_ && !xml_)
      return Status(Code::invalid, "--gpus: expected --xml or --synthetic as well; this host's GPUs are found");
    if (!launched_by_mpirun()) return synthetic_ || xml_ ? run_other_machine() : run_this_host();
    // An input that is wrong must not cost a start of MPI: it is examined first, alike on all ranks.
    if (synthetic_ || xml_) {
      if (const auto machine = load_machine(source()); !machine.ok()) return machine.status();
    }
    auto session = MpiSession::start();
    if (!session.ok()) return session.status();
    if (!synthetic_ && !xml_) return run_job(*session);
    return session->rank() == 0 ? run_other_machine() : 0;
  }

 private:
  TopologySource source() const {
    if (synthetic_) return {TopologySource::Kind::synthetic, *synthetic_};
    if (xml_) return {TopologySource::Kind::xml_file, *xml_};
    return {};
  }

  Result<int> run_other_machine() const {
    const auto machine = load_machine(source());
    if (!machine.ok()) return machine.status();
    const auto gpus = gpus_of_other_machine();
    if (!gpus.ok()) return gpus.status();
    if (json_) {
      Json node = {{"hostname", nullptr}, {"machine", machine_json(*machine)}, {"hcas", nullptr}};
      if (gpus_) node["gpus"] = gpus_json(*gpus);
      print({{"nodes", {std::move(node)}}, {"job", nullptr}});
    } else {
      std::cout << machine_text(*machine) << (gpus_ ? gpus_text(*gpus) : "");
    }
    return 0;
  }

  Result<GpuTopology> gpus_of_other_machine() const {
    if (!gpus_) return GpuTopology();
    const auto gpus = read_gpus(*gpus_);
    if (!gpus.ok()) return gpus.status();
    return locate_gpus(source(), *gpus);
  }

  Result<int> run_this_host() const {
    const auto host = describe_this_host();
    if (!host.ok()) return host.status();
    const Location location = discover_location();
    if (json_) {
      print({{"nodes",
              {{{"hostname", location.hostname},
                {"machine", host->at("machine")},
                {"hcas", host->at("hcas")},
                {"rails", host->at("rails")},
                {"gpus", host->at("gpus")},
                {"process", binding_json(location)}}}},
             {"job", nullptr}});
      return 0;
    }
    std::cout << "host " << location.hostname << '\n'
              << host->at("machine_text").get<std::string>() << host->at("hcas_text").get<std::string>()
              << host->at("rails_text").get<std::string>() << host->at("gpus_text").get<std::string>()
              << "this process: " << binding_text(location) << "; may use " << location.cores_allowed
              << (location.cores_allowed == 1 ? " processing unit\n" : " processing units\n");
    return 0;
  }

  Result<int> run_job(MpiSession& session) const {
    const auto locations = gather_locations(session);
    const Hierarchy hierarchy = Hierarchy::from_locations(locations);
    const auto nodes = gather_nodes(session, hierarchy);
    if (session.rank() != 0) return 0;
    if (json_) {
      Json document = job_document(hierarchy, locations, nodes);
      document["mpi"] = session.library();
      print(document);
    } else {
      std::cout << job_text(hierarchy, locations) << "MPI: " << session.library() << '\n';
      print_grouped(nodes, "machine_text", "machine");
      print_grouped(nodes, "hcas_text", "HCAs");
      print_grouped(nodes, "rails_text", "rails");
      print_grouped(nodes, "gpus_text", "GPUs");
    }
    return 0;
  }

  static Json job_document(const Hierarchy& hierarchy, const std::vector<Location>& locations,
                           const std::vector<Json>& nodes) {
    Json list = Json::array();
    for (int node = 0; node < hierarchy.nodes(); ++node) {
      list.push_back({{"hostname", locations[hierarchy.ranks_on_node(node).front()].hostname},
                      {"machine", nodes[node].at("machine")},
                      {"hcas", nodes[node].at("hcas")},
                      {"rails", nodes[node].at("rails")},
                      {"gpus", nodes[node].at("gpus")}});
    }
    return {{"nodes", std::move(list)}, {"job", job_json(hierarchy, locations)}};
  }

  bool json_ = false;
  std::optional<std::string> synthetic_;
  std::optional<std::string> xml_;
  std::optional<std::string> gpus_;
};

}  // namespace

std::unique_ptr<Command> topo_command() { return std::make_unique<TopoCommand>(); }

}  // namespace plait::tuner
