#include "tuner/commands/explain_fused.h"

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "core/units.h"
#include "tuner/picture/worker_picture.h"
#include "tuner/text/trace_reader.h"
#include "tuner/text/words.h"
#include "tuner/text/worker_reader.h"

namespace plait::tuner {
namespace {

using Json = nlohmann::ordered_json;

std::string share_text(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0);
  return text;
}

void print(const FusedRun& run) {
  std::cout << run.plan << ": " << format_seconds(run.seconds) << " on the slowest rank, the middle one of "
            << plural(run.runs, "run") << "\n\n"
            << "rank" << padded("seconds", 12) << padded("computes", 11) << padded("tells", 9) << padded("waits", 9)
            << padded("else", 9) << padded("messages", 12) << padded("hidden", 9) << '\n';
  for (const FusedRank& rank : run.ranks) {
    const FusedShares shares = shares_of(rank);
    const double all = shares.computes + shares.tells + shares.waits + shares.rest;
    std::cout << padded(std::to_string(rank.rank), 4) << padded(format_seconds(rank.end - rank.begin), 12)
              << padded(share_text(shares.computes, all), 11) << padded(share_text(shares.tells, all), 9)
              << padded(share_text(shares.waits, all), 9) << padded(share_text(shares.rest, all), 9);
    if (shares.messages > 0)
      std::cout << padded(format_seconds(shares.messages), 12) << padded(share_text(shares.hidden, shares.messages), 9);
    std::cout << '\n';
  }
}

Json to_json(const FusedRun& run) {
  Json ranks = Json::array();
  for (const FusedRank& rank : run.ranks) {
    const FusedShares shares = shares_of(rank);
    ranks.push_back({{"rank", rank.rank},
                     {"seconds", rank.end - rank.begin},
                     {"computing_seconds", shares.computes},
                     {"telling_seconds", shares.tells},
                     {"waiting_seconds", shares.waits},
                     {"other_seconds", shares.rest},
                     {"message_seconds", shares.messages},
                     {"hidden_seconds", shares.hidden}});
  }
  return {{"plan", run.plan}, {"seconds", run.seconds}, {"runs", run.runs}, {"ranks", std::move(ranks)}};
}

}  // namespace

Result<int> explain_fused(const FusedQuestion& question) {
  if (question.trace.empty()) return {Code::invalid, "--trace: expected a file of PLAIT_TRACE"};
  const auto text = read_file(question.trace, longest_trace_file);
  if (!text.ok()) return Status(Code::invalid, "--trace " + text.status().message());
  const Result<FusedRun> run = fused_run(*text, question.plan);
  if (!run.ok()) return Status(Code::invalid, "--trace \"" + question.trace + "\": " + run.status().message());
  if (!question.svg.empty())
    if (Status written = replace_file(question.svg, timeline_svg(worker_picture(*run))); !written.ok())
      return Status(written.code(), "--svg " + written.message());
  if (question.json)
    std::cout << to_json(*run).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  else
    print(*run);
  return 0;
}

}  // namespace plait::tuner
