#include "plan/motif/rewrite.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

namespace plait::plan::motif {
namespace {

constexpr std::array<std::string_view, 4> rule_names = {"segment", "spline", "ring", "tree"};

std::string_view name(Rule::Kind kind) { return rule_names[static_cast<std::size_t>(kind)]; }

bool has_number(Rule::Kind kind) { return kind != Rule::Kind::ring; }

Term leaf(Motif motif) { return {.kind = Term::Kind::motif, .motif = std::move(motif), .parts = {}}; }

// One part is that part.
Term composed(Term::Kind kind, std::vector<Term> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return {.kind = kind, .motif = {}, .parts = std::move(parts)};
}

bool combines(Collective what) { return what == Collective::reduce || what == Collective::reduce_scatter_block; }

Term segment(const Motif& motif, int number) {
  std::vector<Term> parts;
  const int count = motif.payload.count / number;
  for (int s = 0; s < number; ++s) {
    Motif part = motif;
    part.payload = {motif.payload.first + s * count, count};
    parts.push_back(leaf(std::move(part)));
  }
  return composed(Term::Kind::parallel, std::move(parts));
}

// The parts' own transfers, at a distance of 0, move nothing. Parts that combine at the same ranks come one by one.
Term spline(const Motif& motif, int number) {
  std::vector<Term> parts;
  const int count = motif.distances.count / number;
  for (int c = 0; c < number; ++c) {
    Motif part = motif;
    part.distances = {motif.distances.first + c * count, count};
    parts.push_back(leaf(std::move(part)));
  }
  return composed(combines(motif.what) ? Term::Kind::sequence : Term::Kind::parallel, std::move(parts));
}

// On the pieces of the same vector.
Motif on_pieces(const Motif& motif, Collective what) {
  Motif other = motif;
  other.what = what;
  other.pieces = Pieces::of_vector;
  other.base = motif.payload.first;
  other.stride = motif.payload.count / motif.members();
  other.payload = {0, other.stride};
  if (!rooted_motif(what)) other.root = 0;
  return other;
}

Term ring(const Motif& motif) {
  const bool scatters = motif.what == Collective::bcast;
  const bool gathers = motif.what == Collective::reduce;
  return composed(Term::Kind::sequence,
                  {leaf(on_pieces(motif, scatters ? Collective::scatter : Collective::reduce_scatter_block)),
                   leaf(on_pieces(motif, gathers ? Collective::gather : Collective::allgather))});
}

// The groups of `number` members, each with the one that stands for it in front: the root where it is one of them.
std::vector<Motif> groups_of(const Motif& motif, int number, Collective what) {
  std::vector<Motif> groups;
  for (int first = 0; first < motif.members(); first += number) {
    Motif group = motif;
    group.what = what;
    group.group.assign(motif.group.begin() + first, motif.group.begin() + first + number);
    const bool has_root = motif.root >= first && motif.root < first + number;
    group.root = has_root ? motif.root - first : 0;
    group.distances = {0, number};
    groups.push_back(std::move(group));
  }
  return groups;
}

Term in_parallel(std::vector<Motif> motifs) {
  std::vector<Term> parts;
  for (Motif& motif : motifs) parts.push_back(leaf(std::move(motif)));
  return composed(Term::Kind::parallel, std::move(parts));
}

Term tree(const Motif& motif, int number) {
  const std::vector<Motif> groups = groups_of(motif, number, Collective::reduce);
  Motif among = motif;
  among.group.clear();
  for (const Motif& group : groups) among.group.push_back(group.group[static_cast<std::size_t>(group.root)]);
  among.root = motif.root / number;
  among.distances = {0, among.members()};
  std::vector<Term> steps;
  if (motif.what != Collective::bcast) steps.push_back(in_parallel(groups));
  steps.push_back(leaf(std::move(among)));
  if (motif.what != Collective::reduce) steps.push_back(in_parallel(groups_of(motif, number, Collective::bcast)));
  return composed(Term::Kind::sequence, std::move(steps));
}

Term rewritten(const Rule& rule, const Motif& motif) {
  switch (rule.kind) {
    case Rule::Kind::segment:
      return segment(motif, rule.number);
    case Rule::Kind::spline:
      return spline(motif, rule.number);
    case Rule::Kind::ring:
      return ring(motif);
    default:
      return tree(motif, rule.number);
  }
}

Status refuse(const Rule& rule, const std::string& of, const std::string& why) {
  return {Code::invalid, text(rule) + " of " + of + ": " + why};
}

// Units into which the rule cuts the payload.
int parts_of_payload(const Rule& rule, const Motif& motif) {
  if (rule.kind == Rule::Kind::segment) return rule.number;
  return rule.kind == Rule::Kind::ring ? motif.members() : 1;
}

void scale(Motif& motif, int factor) {
  motif.payload = {motif.payload.first * factor, motif.payload.count * factor};
  motif.base *= factor;
  motif.stride *= factor;
}

void scale(Term& term, int factor) {
  scale(term.motif, factor);
  for (Term& part : term.parts) scale(part, factor);
}

// Which motifs of a term a rule is for, and how many were met so far.
struct Chosen {
  std::optional<std::size_t> only = {};  // none: all that it fits
  std::size_t met = 0;
  bool takes(const Rule& rule, const Motif& motif) {
    const std::size_t number = met++;
    return only.value_or(number) == number && fits(rule, motif);
  }
};

// The factor of all motifs that are chosen.
std::int64_t units_factor(const Rule& rule, const Term& term, Chosen chosen) {
  std::int64_t factor = 1;
  for (const Motif* motif : motifs_of(term))
    if (chosen.takes(rule, *motif) && factor <= most_units)
      factor = std::lcm(factor, std::int64_t{motif::units_factor(rule, *motif)});
  return factor;
}

void apply_to(const Rule& rule, Term& term, Chosen& chosen) {
  if (term.kind != Term::Kind::motif) {
    for (Term& part : term.parts) apply_to(rule, part, chosen);
  } else if (chosen.takes(rule, term.motif)) {
    term = rewritten(rule, term.motif);
  }
}

// Motifs that the rule makes of one.
std::int64_t motifs_made(const Rule& rule, const Motif& motif) {
  if (rule.kind == Rule::Kind::ring) return 2;
  if (rule.kind != Rule::Kind::tree) return rule.number;
  const std::int64_t groups = motif.members() / rule.number;
  return 1 + (motif.what == Collective::allreduce ? 2 : 1) * groups;
}

// Before anything is made.
Status check_size(const Rule& rule, const Rewriting& rewriting, std::int64_t factor, Chosen chosen) {
  if (factor * rewriting.units > most_units)
    return refuse(rule, text(rewriting.whole), "cuts it into more than " + std::to_string(most_units) + " units");
  std::int64_t motifs = 0, fitting = 0;
  for (const Motif* motif : motifs_of(rewriting.term)) {
    const bool taken = chosen.takes(rule, *motif);
    motifs += taken ? motifs_made(rule, *motif) : 1;
    fitting += taken ? 1 : 0;
  }
  if (fitting == 0) return refuse(rule, text(rewriting.whole), "it fits none of the motifs");
  if (motifs > most_motifs)
    return refuse(rule, text(rewriting.whole), "makes more than " + std::to_string(most_motifs) + " motifs");
  return {};
}

Result<Rewriting> rewrite_chosen(const Rewriting& rewriting, const Rule& rule, Chosen chosen) {
  const std::int64_t factor = units_factor(rule, rewriting.term, chosen);
  if (Status status = check_size(rule, rewriting, factor, chosen); !status.ok()) return status;
  Rewriting result = rewriting;
  result.units *= static_cast<int>(factor);
  scale(result.whole, static_cast<int>(factor));
  scale(result.term, static_cast<int>(factor));
  apply_to(rule, result.term, chosen);
  return result;
}

Result<Rule> parse_rule(std::string_view text) {
  const auto colon = text.find(':');
  const auto kind = std::ranges::find(rule_names, text.substr(0, colon));
  const std::string expected = ": expected segment:K, spline:K, tree:K or ring";
  if (kind == rule_names.end()) return {Code::invalid, "rule \"" + std::string(text) + "\"" + expected};
  Rule rule{.kind = static_cast<Rule::Kind>(kind - rule_names.begin())};
  if (has_number(rule.kind) != (colon != text.npos))
    return {Code::invalid, "rule \"" + std::string(text) + "\"" + expected};
  if (!has_number(rule.kind)) return rule;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rule.number);
  if (error != std::errc() || end != digits.data() + digits.size() || rule.number < 2 || rule.number > most_units)
    return {Code::invalid,
            "rule \"" + std::string(text) + "\": expected a number from 2 to " + std::to_string(most_units)};
  return rule;
}

// Numbers that divide, but for 1 and itself.
std::vector<int> proper_divisors(int number) {
  std::vector<int> divisors;
  for (int d = 2; d < number; ++d)
    if (number % d == 0) divisors.push_back(d);
  return divisors;
}

std::vector<Rule> rules_for(const Rewriting& rewriting, std::span<const int> segments) {
  std::vector<Rule> rules;
  const auto add = [&](Rule rule) {
    const auto all = motifs_of(rewriting.term);
    const bool fitting = std::ranges::any_of(all, [&](const Motif* motif) { return fits(rule, *motif); });
    if (fitting && std::ranges::find(rules, rule) == rules.end()) rules.push_back(rule);
  };
  for (const int number : segments) add({Rule::Kind::segment, number});
  add({Rule::Kind::ring, 0});
  for (const Motif* motif : motifs_of(rewriting.term))
    for (const int number : proper_divisors(motif->members())) {
      add({Rule::Kind::tree, number});
      add({Rule::Kind::spline, number});
    }
  return rules;
}

}  // namespace

Result<std::vector<Rule>> parse_rules(std::string_view text) {
  std::vector<Rule> rules;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const Result<Rule> rule = parse_rule(text.substr(0, comma));
    if (!rule.ok()) return rule.status();
    rules.push_back(*rule);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return parse_rule(text).status();  // a comma at the end
  }
  return rules;
}

std::string text(const Rule& rule) {
  const std::string kind(name(rule.kind));
  return has_number(rule.kind) ? kind + ":" + std::to_string(rule.number) : kind;
}

std::string text(std::span<const Rule> rules) {
  std::string all;
  for (const Rule& rule : rules) all += (all.empty() ? "" : ",") + text(rule);
  return all;
}

bool fits(const Rule& rule, const Motif& motif) {
  const Collective what = motif.what;
  const bool passes_all = what == Collective::allreduce || what == Collective::reduce || what == Collective::bcast;
  switch (rule.kind) {
    case Rule::Kind::segment:
      return rule.number > 1;
    case Rule::Kind::spline:
      return what != Collective::allreduce && rule.number > 1 && rule.number <= motif.distances.count &&
             motif.distances.count % rule.number == 0;
    case Rule::Kind::ring:
      return passes_all && motif.whole_pattern() && motif.members() > 1;
    default:
      return passes_all && motif.whole_pattern() && rule.number > 1 && rule.number < motif.members() &&
             motif.members() % rule.number == 0;
  }
}

int units_factor(const Rule& rule, const Motif& motif) {
  const int parts = parts_of_payload(rule, motif);
  return parts / std::gcd(parts, motif.payload.count);
}

Result<Term> apply(const Rule& rule, const Motif& motif) {
  if (!fits(rule, motif)) return refuse(rule, text(motif), "it does not fit");
  if (units_factor(rule, motif) != 1)
    return refuse(rule, text(motif),
                  "the payload has " + std::to_string(motif.payload.count) + " units: expected a multiple of " +
                      std::to_string(parts_of_payload(rule, motif)));
  return rewritten(rule, motif);
}

Result<Rewriting> rewrite(const Rewriting& rewriting, const Rule& rule) { return rewrite_chosen(rewriting, rule, {}); }

Result<Rewriting> rewrite_one(const Rewriting& rewriting, std::size_t motif, const Rule& rule) {
  return rewrite_chosen(rewriting, rule, {.only = motif});
}

Result<Rewriting> rewrite(const Rewriting& rewriting, std::span<const Rule> rules) {
  Result<Rewriting> result = rewriting;
  for (const Rule& rule : rules)
    if (result.ok()) result = rewrite(*result, rule);
  return result;
}

std::vector<std::vector<Rule>> rewritings(const Rewriting& whole, int depth, std::span<const int> segments) {
  std::vector<std::vector<Rule>> lists = {{}};
  std::vector<Rewriting> forms = {whole};  // of the lists
  std::unordered_set<std::string> seen = {text(whole.term)};
  for (std::size_t next = 0; next < lists.size(); ++next) {
    if (static_cast<int>(lists[next].size()) == depth) break;  // as all that follow
    const Rewriting here = std::exchange(forms[next], {});
    for (const Rule& rule : rules_for(here, segments)) {
      Result<Rewriting> further = rewrite(here, rule);
      if (!further.ok() || motifs_of(further->term).size() > most_listed_motifs) continue;
      if (!seen.insert(text(further->term)).second) continue;
      lists.push_back(lists[next]);
      lists.back().push_back(rule);
      forms.push_back(static_cast<int>(lists.back().size()) < depth ? std::move(*further) : Rewriting());
      if (lists.size() == most_lists) return lists;
    }
  }
  return lists;
}

}  // namespace plait::plan::motif
