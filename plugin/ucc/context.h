// A process of a job, as a UCC context shows it: when Plait starts and ends where there is no MPI.
#pragma once

#include <ucc/api/ucc.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plugin/layer.h"
#include "runtime/execution/communicator.h"
#include "runtime/job/agreement.h"
#include "runtime/progress/progress.h"
#include "runtime/team/own_rails.h"

namespace plait::plugin {

struct ProcessFacts {
  int rank = 0, ranks = 1;
  bool concurrent = false;  // several threads may call
  bool exchanges = false;   // all ranks learn of the others' introductions
  std::string host;         // "UCC 1.9.0"
};

// A team of this process, for as long as it is one: what it has recorded is in the trace, also of a process that ends
// without destroying it. Throws where memory is short.
class ListedTeam {
 public:
  explicit ListedTeam(Communicator& team);
  ~ListedTeam();
  ListedTeam(const ListedTeam&) = delete;
  ListedTeam& operator=(const ListedTeam&) = delete;

 private:
  Communicator& team_;
};

// The settings are the process's: of its first context, and those of a later one must be the same.
class UccContext {
 public:
  // `preferred`: entries "PLAIT_X=value" that stand before the environment's. Reads files. Throws where memory is
  // short.
  UccContext(const ProcessFacts& facts, const std::vector<std::string>& preferred);
  ~UccContext();
  UccContext(const UccContext&) = delete;
  UccContext& operator=(const UccContext&) = delete;

  const Introduction& introduction() const;
  // By rank; nullptr: that rank lacks the component, and no call is taken. Empty: this rank starts by itself.
  void agree(std::span<const Introduction* const> introductions);
  // Whether teams may be set up: the same on all ranks of the context.
  bool takes_calls() const { return takes_calls_; }
  // Collective over the ranks of `oob`.
  void report(const ucc_oob_coll_t& oob);

  Progress progress;  // of all of its teams
  RailsOfRank rails;  // likewise

 private:
  class IntroducedWorld;
  void start();
  void start_helper();
  void stay_off(const char* reason);

  const ProcessFacts facts_;
  std::unique_ptr<IntroducedWorld> world_;  // nullptr: the process has a job already
  Attendance attendance_;
  std::unique_ptr<Agreement> agreement_;  // likewise
  bool takes_calls_ = false;
  bool counts_ = true;   // in the report: no lower rank is a thread of this process
  bool helped_ = false;  // a thread moves its operations on
};

}  // namespace plait::plugin
