// plait overlap: how reductions and computation share a machine: `measure` what they take from each other, `plan` a
// training step (docs/overlap.md).
#include <CLI/CLI.hpp>

#include "tuner/command.h"
#include "tuner/overlap_measured.h"
#include "tuner/overlap_plan.h"

namespace plait::tuner {
namespace {

class OverlapCommand : public Command {
 public:
  std::string_view name() const override { return "overlap"; }
  std::string_view summary() const override {
    return "plan a training step's reductions beside its computation, or measure what they take from each other";
  }

  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    plan_ = app.add_subcommand("plan", "choose groups and shares, and write the overlap plan");
    add_plan_options(*plan_);
    measure_ = app.add_subcommand("measure", "under mpirun: run reductions beside computation, and fit the curves");
    add_measure_options(*measure_);
  }

  Result<int> run() override {
    return plan_->parsed() ? plan_overlap(plan_options_) : measure_overlap(measure_options_);
  }

 private:
  void add_plan_options(CLI::App& app) {
    app.add_option("--layers", plan_options_.layers, "what a step computes and reduces, layer by layer")->required();
    app.add_option("--contention", plan_options_.contention, "what plait overlap measure wrote")->required();
    app.add_option("--groups", plan_options_.groups, "at most so many groups (K)")->capture_default_str();
    app.add_option("--chunks", plan_options_.chunks, "parts of the computation (Z)")->capture_default_str();
    app.add_option(
        "--shares", plan_options_.shares,
        "threads x duty that may be taken, such as 1x0.25,1x1; one alone: groups only (default: those of the "
        "contention file)");
    app.add_option("--given-groups", plan_options_.given_groups,
                   "an overlap plan for the same calls: keep its groups, and choose shares only");
    app.add_option("--reduction", plan_options_.reduction,
                   "start-up and moved bytes: plan (those of the plans that run) or ring (by formula)")
        ->capture_default_str();
    app.add_option("--nodes", plan_options_.nodes, "to plan for (default: those of the contention file)");
    app.add_option("--computation", plan_options_.computation, "scale the layers' seconds to so many in all");
    app.add_option("--bytes-factor", plan_options_.bytes_factor, "scale the layers' bytes")->capture_default_str();
    app.add_option("--machine", plan_options_.machine,
                   "to plan for: a machine file, or default (default: the machine that this runs on)");
    app.add_option("-o,--output", plan_options_.output, "write the overlap plan, for PLAIT_OVERLAP");
    app.add_flag("--json", plan_options_.json, "print JSON");
  }

  void add_measure_options(CLI::App& app) {
    app.add_option("-o,--output", measure_options_.output, "the contention file to write")->required();
    app.add_option("--kernel", measure_options_.kernel, "what computes: memory, compute or mixed")
        ->capture_default_str();
    app.add_option("--shares", measure_options_.shares, "threads x duty to measure")->capture_default_str();
    app.add_option("--bytes", measure_options_.bytes, "of the reductions, one or several")->capture_default_str();
    app.add_option("--repeats", measure_options_.repeats, "of each measurement")->capture_default_str();
    app.add_option("--machine", measure_options_.machine, "whose plans' start-up and moved bytes are counted")
        ->capture_default_str();
    app.add_option("--g4", measure_options_.g4, "an exponent, or free")->capture_default_str();
    app.add_flag("--table", measure_options_.table, "write a table of the measured figures as well, which goes first");
    app.add_flag("--json", measure_options_.json, "print what is written");
    app.add_flag("--quiet", measure_options_.quiet, "no progress");
  }

  CLI::App* plan_ = nullptr;
  CLI::App* measure_ = nullptr;
  OverlapPlanOptions plan_options_;
  OverlapMeasureOptions measure_options_;
};

}  // namespace

std::unique_ptr<Command> overlap_command() { return std::make_unique<OverlapCommand>(); }

}  // namespace plait::tuner
