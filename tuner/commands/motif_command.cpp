// plait motif: a collective's rewritings as motifs, with what each is predicted to take. Output: docs/schedule.md.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file.h"
#include "core/units.h"
#include "plan/choose/motif_cost.h"
#include "plan/motif/meaning.h"
#include "plan/motif/rewrite.h"
#include "tuner/commands/command.h"
#include "tuner/commands/grid_options.h"
#include "tuner/picture/timeline_svg.h"
#include "tuner/text/words.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_depth = 3, most_ranks = 256;
constexpr std::size_t most_shown = 40, most_bytes = std::size_t{1} << 40;

struct Options {
  std::string collective, bytes = "1M", system, machine = "default", rules, segments = "2,4,8", rails, svg;
  int depth = 2, root = 0;
  bool json = false;
};

struct Question {
  Machine machine;
  Hierarchy hierarchy;
  Call call;
  std::vector<int> segments;
  std::vector<std::int8_t> rails;
};

struct Found {
  std::vector<motif::Rule> rules;
  motif::Rewriting rewriting;
  double seconds = 0;
};

int rails_of(const Machine& machine) { return static_cast<int>(rail_shares(machine).size()); }

CandidateContext context_of(const Question& question) {
  return {.hierarchy = question.hierarchy, .machine = question.machine, .rails = rails_of(question.machine)};
}

Result<Collective> parse_collective(const std::string& text) {
  const std::optional<Collective> found = collective_named(text);
  const Result<motif::Rewriting> whole =
      motif::whole_collective(found.value_or(Collective::scan), 2, 0);  // a scan is no motif
  if (!whole.ok()) return {Code::invalid, "\"" + text + "\": " + whole.status().message()};
  return *found;
}

// "0,0,1"
Result<std::vector<std::int8_t>> parse_rails(const std::string& text, int most) {
  std::vector<std::int8_t> rails;
  if (text.empty()) return rails;
  const Result<std::vector<int>> numbers = parse_numbers("--rails", text);
  if (!numbers.ok()) return numbers.status();
  for (const int number : *numbers) {
    if (number < 0 || number >= most)
      return {Code::invalid, "--rails " + std::to_string(number) + ": the machine has " + std::to_string(most) +
                                 (most == 1 ? " rail" : " rails") + ", from 0 on"};
    rails.push_back(static_cast<std::int8_t>(number));
  }
  return rails;
}

Result<Question> understand(const Options& options) {
  Question question;
  const Result<Collective> collective = parse_collective(options.collective);
  if (!collective.ok()) return collective.status();
  Result<Machine> machine = load_machine(options.machine);
  if (!machine.ok()) return machine.status();
  Result<Hierarchy> hierarchy = parse_system(options.system, most_ranks);
  if (!hierarchy.ok()) return hierarchy.status();
  const Result<std::vector<int>> segments = parse_segments(options.segments);
  if (!segments.ok()) return segments.status();
  Result<std::vector<std::int8_t>> rails = parse_rails(options.rails, rails_of(*machine));
  if (!rails.ok()) return rails.status();
  const Result<std::size_t> bytes = parse_bytes(options.bytes);
  if (!bytes.ok() || *bytes == 0 || *bytes > most_bytes)
    return {Code::invalid, "--bytes \"" + options.bytes + "\": expected a number such as 64M, up to 1024G"};
  const int ranks = hierarchy->ranks();
  if (options.root < 0 || options.root >= ranks)
    return {Code::invalid,
            "--root " + std::to_string(options.root) + ": expected a rank from 0 to " + std::to_string(ranks - 1)};
  if (options.depth < 0 || options.depth > most_depth)
    return {Code::invalid,
            "--depth " + std::to_string(options.depth) + ": expected 0 to " + std::to_string(most_depth)};
  question.machine = std::move(*machine);
  question.hierarchy = std::move(*hierarchy);
  question.call = {.collective = *collective, .root = options.root, .count = *bytes};
  question.segments = *segments;
  question.rails = std::move(*rails);
  return question;
}

Result<Found> find(const Question& question, std::vector<motif::Rule> rules, MotifPricer& pricer) {
  const Call& call = question.call;
  Result<motif::Rewriting> rewriting = rewriting_of(rules, call.collective, call.root, true, question.hierarchy);
  if (!rewriting.ok()) return rewriting.status();
  if (Status proven = motif::prove(*rewriting); !proven.ok()) return proven;
  const double seconds = seconds_of(pricer.times(*rewriting, call, question.rails));
  return Found{std::move(rules), std::move(*rewriting), seconds};
}

// The quickest first.
Result<std::vector<Found>> find_all(const Question& question, const Options& options) {
  std::vector<std::vector<motif::Rule>> lists;
  if (options.rules.empty()) {
    const Result<motif::Rewriting> whole =
        rewriting_of({}, question.call.collective, question.call.root, true, question.hierarchy);
    if (!whole.ok()) return whole.status();
    lists = motif::rewritings(*whole, options.depth, question.segments);
  } else {
    Result<std::vector<motif::Rule>> rules = motif::parse_rules(options.rules);
    if (!rules.ok()) return {Code::invalid, "--rules: " + rules.status().message()};
    lists.push_back(std::move(*rules));
  }
  std::vector<Found> all;
  Status refusal;  // the first
  MotifPricer pricer(context_of(question));
  for (std::vector<motif::Rule>& rules : lists) {
    Result<Found> found = find(question, std::move(rules), pricer);
    if (found.ok())
      all.push_back(std::move(*found));
    else if (refusal.ok())
      refusal = found.status();
  }
  if (all.empty()) return refusal;
  std::ranges::stable_sort(all, {}, &Found::seconds);
  return all;
}

std::string title_of(const Question& question) {
  return std::string(name(question.call.collective)) + " of " + format_bytes(question.call.count) + ", system " +
         question.hierarchy.describe() + ", machine " + question.machine.name;
}

std::string rules_text(const Found& found) { return found.rules.empty() ? "(as it is)" : motif::text(found.rules); }

// Long compositions are cut.
std::string shortened(const std::string& text) {
  constexpr std::size_t most = 120;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // within a letter of UTF-8
  return text.substr(0, end) + " ..";
}

void print_list(const Question& question, const std::vector<Found>& all) {
  std::cout << title_of(question) << ": " << plural(all.size(), "rewriting") << ", proven\n";
  std::size_t width = 0;
  const std::size_t shown = std::min(all.size(), most_shown);
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, rules_text(all[i]).size());
  for (std::size_t i = 0; i < shown; ++i) {
    std::string rules = rules_text(all[i]);
    rules.resize(width, ' ');
    std::cout << padded(format_seconds(all[i].seconds), 10) << "  " << rules << "  "
              << shortened(motif::text(all[i].rewriting.term)) << '\n';
  }
  if (shown < all.size()) std::cout << "and " << all.size() - shown << " more\n";
}

void print_one(const Question& question, const Found& found) {
  std::cout << title_of(question) << ", " << rules_text(found) << ": " << format_seconds(found.seconds)
            << " predicted, proven\n";
  for (const MotifTime& time : MotifPricer(context_of(question)).times(found.rewriting, question.call, question.rails))
    std::cout << padded(format_seconds(time.begin), 10) << padded(format_seconds(time.end), 10) << "  "
              << (time.rail == any_rail ? std::string() : "rail " + std::to_string(time.rail) + "  ")
              << motif::text(*time.motif) << '\n';
}

// As PLAIT_PLAN takes it.
std::string plan_text(const Question& question, const Found& found) {
  std::string text = "[" + motif::text(found.rules) + "]";
  for (std::size_t i = 0; i < question.rails.size(); ++i)
    text += (i == 0 ? " @" : ",") + std::to_string(question.rails[i]);
  return text;
}

Json json_of(const Question& question, const std::vector<Found>& all) {
  Json json = {{"collective", name(question.call.collective)},
               {"bytes", question.call.count},
               {"ranks", question.hierarchy.ranks()},
               {"machine", question.machine.name},
               {"rewritings", Json::array()}};
  for (const Found& found : all) {
    Json motifs = Json::array();
    for (const MotifTime& time :
         MotifPricer(context_of(question)).times(found.rewriting, question.call, question.rails)) {
      Json motif = {{"motif", motif::text(*time.motif)}, {"begin", time.begin}, {"end", time.end}};
      if (time.rail != any_rail) motif["rail"] = time.rail;
      motifs.push_back(std::move(motif));
    }
    json["rewritings"].push_back({{"rules", motif::text(found.rules)},
                                  {"plan", plan_text(question, found)},
                                  {"seconds", found.seconds},
                                  {"units", found.rewriting.units},
                                  {"text", motif::text(found.rewriting.term)},
                                  {"motifs", std::move(motifs)}});
  }
  return json;
}

// A lane for each rail, and rows where motifs of other ranks run beside each other; colours by collective.
TimelinePicture picture_of(const Question& question, const Found& found) {
  TimelinePicture picture;
  picture.title = title_of(question);
  picture.plan = rules_text(found);
  picture.subtitle = "predicted " + format_seconds(found.seconds);
  std::map<int, TimelineLane> lanes;
  std::map<Collective, TimelineInk> inks;
  for (const MotifTime& time :
       MotifPricer(context_of(question)).times(found.rewriting, question.call, question.rails)) {
    const auto [ink, fresh] = inks.try_emplace(time.motif->what, TimelineInk{static_cast<int>(inks.size()), 0});
    if (fresh) picture.legend.push_back({ink->second, std::string(name(time.motif->what))});
    const std::string text = motif::text(*time.motif);
    TimelineLane& lane = lanes[time.rail];
    lane.name = time.rail == any_rail ? "network" : "rail " + std::to_string(time.rail);
    lane.boxes.push_back({.begin = time.begin, .end = time.end, .ink = ink->second, .title = text, .label = text});
  }
  TimelinePanel panel{.title = "motifs", .note = shortened(motif::text(found.rewriting.term)), .lanes = {}};
  for (auto& [rail, lane] : lanes) {
    pack_rows(lane.boxes);
    panel.lanes.push_back(std::move(lane));
  }
  picture.panels.push_back(std::move(panel));
  return picture;
}

class MotifCommand : public Command {
 public:
  std::string_view name() const override { return "motif"; }
  std::string_view summary() const override {
    return "a collective's rewritings as smaller ones, with predicted times";
  }

  void add_options(CommandLine line) override {
    line.option("collective", options_.collective,
                "allreduce, reduce, bcast, allgather, reduce_scatter_block, gather, scatter or alltoall")
        .required();
    line.option("--system", options_.system, "children at each level, outermost first: 4,2").required();
    line.option("--bytes", options_.bytes, "of the call, as for plait explain").shows_default();
    line.option("--machine", options_.machine, "default, a100, v100 or a machine file").shows_default();
    line.option("--rules", options_.rules, "this rewriting alone, motif by motif: segment:4,ring");
    line.option("--depth", options_.depth, "rules of a rewriting at most").shows_default();
    line.option("--segments", options_.segments, "into how many segments a payload may be cut").shows_default();
    line.option("--rails", options_.rails, "rails that the motifs go over in turn: 0,0,1");
    line.option("--root", options_.root, "of a rooted collective").shows_default();
    line.option("--svg", options_.svg, "draw the quickest, or that of --rules, into this file");
    line.flag("--json", options_.json, "print JSON");
  }

  Result<int> run() override {
    const Result<Question> question = understand(options_);
    if (!question.ok()) return question.status();
    const Result<std::vector<Found>> all = find_all(*question, options_);
    if (!all.ok()) return all.status();
    if (!options_.svg.empty())
      if (Status written = replace_file(options_.svg, timeline_svg(picture_of(*question, all->front()))); !written.ok())
        return Status(written.code(), "--svg " + written.message());
    if (options_.json)
      std::cout << json_of(*question, *all).dump(2) << '\n';
    else if (options_.rules.empty())
      print_list(*question, *all);
    else
      print_one(*question, all->front());
    return 0;
  }

 private:
  Options options_;
};

}  // namespace

std::unique_ptr<Command> motif_command() { return std::make_unique<MotifCommand>(); }

}  // namespace plait::tuner
