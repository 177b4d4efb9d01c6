// What `plait tune --measure` runs: the sizes of each collective, and the model's best plans there. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "plan/choose/candidate.h"
#include "plan/model/collective.h"
#include "tuner/text/layer.h"
#include "tuner/text/measured_table.h"

namespace plait::tuner {

inline constexpr std::size_t most_measured_plans = 5;

// Both ends, and powers of two between them, at most eight times as large as the one before.
std::vector<std::size_t> measured_sizes(SizeSpan span);

// A plan as a table names it: a program's name without a number of chunks leaves that to the planner.
std::string with_chunks(std::string plan, Collective collective);

// Ascending sizes of each collective in turn; the first plan is what `plait tune` would write into a table. Fails
// (invalid) where the machine's figures leave no plan a time.
Result<std::vector<AgendaItem>> make_agenda(std::span<const Collective> collectives, SizeSpan span,
                                            const CandidateContext& context);

// For the other ranks, which must do the same: lines of text, and back. Precondition: the text is agenda_text()'s.
std::string agenda_text(std::span<const AgendaItem> agenda);
std::vector<AgendaItem> parse_agenda(std::string_view text);

}  // namespace plait::tuner
