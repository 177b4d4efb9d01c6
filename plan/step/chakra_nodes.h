// An execution trace in Chakra's schema (et_def.proto of mlcommons/chakra), in the JSON form of its messages: what of
// it a program's step needs.
//
// A file is a GlobalMetadata and its Nodes one after the other, as chakra_jsonizer writes them; a list of them, an
// object with "nodes", or one with "workload_graph" (which Chakra's feeder reads) is read as well. Members may be
// called as in the schema ("data_deps") or as protobuf writes them
// ("dataDeps"); numbers may be texts. Members and attributes that are not listed here are passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/model/layer.h"

namespace plait::plan::step {

// Values as in the schema.
enum class ChakraType : std::uint8_t {
  invalid,
  metadata,
  mem_load,
  mem_store,
  comp,
  comm_send,
  comm_recv,
  comm_coll,
  storage,
  batch,
  checkpoint,
};
std::string_view name(ChakraType type);  // "COMP_NODE"

enum class ChakraCollective : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier,
};
std::string_view name(ChakraCollective collective);  // "ALL_REDUCE"

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name = {};
  ChakraType type = ChakraType::invalid;
  std::vector<std::uint64_t> ctrl_deps = {}, data_deps = {};
  std::uint64_t start_micros = 0, duration_micros = 0;
  // Attributes.
  bool is_cpu_op = true;
  std::optional<ChakraCollective> comm_type = {};
  std::optional<std::uint64_t> comm_size = {};
  std::string pg_name = {};
  // Attributes of ours, "plait_" before each.
  std::optional<double> seconds = {};       // more exact than the duration
  std::optional<double> submit = {};        // since the step's begin
  std::optional<std::uint64_t> bytes = {};  // as payload_bytes()
  std::uint64_t ranks = 0;                  // of the communicator
  bool program_order = false;               // ctrl_deps only say what the nodes' order does
  bool blocking = false, persistent = false;
  std::vector<std::string> after_previous = {};
  std::string site = {}, data_type = {}, op = {};
};

struct ChakraTrace {
  std::string version = {};
  std::string step = {}, of = {};  // attributes of ours
  std::vector<ChakraNode> nodes = {};
};

// Fails (invalid) with the place and what was expected there.
Result<ChakraTrace> parse_chakra_nodes(std::string_view text);
// A message a line.
std::string chakra_json(const ChakraTrace& trace);

}  // namespace plait::plan::step
