// plait overlap: how reductions and computation share a machine: `measure` what they take from each other, `plan` a
// training step (docs/overlap.md).

#include "tuner/commands/command.h"
#include "tuner/commands/overlap_measured.h"
#include "tuner/commands/overlap_plan.h"

namespace plait::tuner {
namespace {

class OverlapCommand : public Command {
 public:
  std::string_view name() const override { return "overlap"; }
  std::string_view summary() const override {
    return "plan a training step's reductions beside its computation, or measure what they take from each other";
  }

  void add_options(CommandLine line) override {
    line.require_subcommand();
    plan_ = line.subcommand("plan", "choose groups and shares, and write the overlap plan");
    add_plan_options(*plan_);
    measure_ = line.subcommand("measure", "under mpirun: run reductions beside computation, and fit the curves");
    add_measure_options(*measure_);
  }

  Result<int> run() override {
    return plan_->was_given() ? plan_overlap(plan_options_) : measure_overlap(measure_options_);
  }

 private:
  void add_plan_options(CommandLine line) {
    line.option("--layers", plan_options_.layers, "what a step computes and reduces, layer by layer").required();
    line.option("--contention", plan_options_.contention, "what plait overlap measure wrote").required();
    line.option("--groups", plan_options_.groups, "at most so many groups (K)").shows_default();
    line.option("--chunks", plan_options_.chunks, "parts of the computation (Z)").shows_default();
    line.option("--shares", plan_options_.shares,
                "threads x duty that may be taken, such as 1x0.25,1x1; one alone: groups only (default: those of the "
                "contention file)");
    line.option("--given-groups", plan_options_.given_groups,
                "an overlap plan for the same calls: keep its groups, and choose shares only");
    line.option("--reduction", plan_options_.reduction,
                "start-up and moved bytes: plan (those of the plans that run) or ring (by formula)")
        .shows_default();
    line.option("--nodes", plan_options_.nodes, "to plan for (default: those of the contention file)");
    line.option("--computation", plan_options_.computation, "scale the layers' seconds to so many in all");
    line.option("--bytes-factor", plan_options_.bytes_factor, "scale the layers' bytes").shows_default();
    line.option("--machine", plan_options_.machine,
                "to plan for: a machine file, or default (default: the machine that this runs on)");
    line.option("-o,--output", plan_options_.output, "write the overlap plan, for PLAIT_OVERLAP");
    line.flag("--json", plan_options_.json, "print JSON");
  }

  void add_measure_options(CommandLine line) {
    line.option("-o,--output", measure_options_.output, "the contention file to write").required();
    line.option("--kernel", measure_options_.kernel, "what computes: memory, compute or mixed").shows_default();
    line.option("--shares", measure_options_.shares, "threads x duty to measure").shows_default();
    line.option("--bytes", measure_options_.bytes, "of the reductions, one or several").shows_default();
    line.option("--repeats", measure_options_.repeats, "of each measurement").shows_default();
    line.option("--machine", measure_options_.machine, "whose plans' start-up and moved bytes are counted")
        .shows_default();
    line.option("--g4", measure_options_.g4, "an exponent, or free").shows_default();
    line.flag("--table", measure_options_.table, "write a table of the measured figures as well, which goes first");
    line.flag("--json", measure_options_.json, "print what is written");
    line.flag("--quiet", measure_options_.quiet, "no progress");
  }

  std::optional<CommandLine> plan_;
  std::optional<CommandLine> measure_;
  OverlapPlanOptions plan_options_;
  OverlapMeasureOptions measure_options_;
};

}  // namespace

std::unique_ptr<Command> overlap_command() { return std::make_unique<OverlapCommand>(); }

}  // namespace plait::tuner
