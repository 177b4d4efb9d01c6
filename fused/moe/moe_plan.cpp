#include "fused/moe/moe_plan.h"

#include <cstring>

namespace plait::fused {
namespace {

// A note without counts is nowhere.
void copy_counts(void* to, const void* from, std::int64_t counts) {
  if (counts > 0) std::memcpy(to, from, static_cast<std::size_t>(counts) * sizeof(std::int64_t));
}

}  // namespace

// How many experts each rank has.
Status MoePlan::meet(Oob& oob) {
  std::vector<std::int64_t> experts;
  const Status room = attempt([&]() -> Status {
    experts.resize(static_cast<std::size_t>(ranks()));
    first_experts_.assign(1, 0);
    first_experts_.reserve(experts.size() + 1);
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  const std::int64_t mine = problem_.experts();
  if (Status met = oob.gather_all(&mine, sizeof mine, experts.data(), "exchange how many experts they have"); !met.ok())
    return met;
  for (const std::int64_t count : experts) first_experts_.push_back(first_experts_.back() + count);
  return {};
}

// Rows of the output that nothing comes for are left alone.
void MoePlan::visit_data(DataVisitor& visit) {
  const auto weights = static_cast<std::uint64_t>(problem_.depth * problem_.columns) * sizeof(float);
  for (const float*& one : problem_.weights) visit(one, weights, DataWay::given);
  visit(problem_.output, static_cast<std::uint64_t>(output_floats()) * sizeof(float), DataWay::changed);
}

void MoePlan::lay_out_notes(ExchangeRequest& request, std::int64_t piece_rows) {
  routing_ = Routing({.entries = problem_.entries(), .capacity = problem_.capacity, .first_experts = first_experts_});
  counts_.resize(static_cast<std::size_t>(ranks() * problem_.experts()));
  for (int other = 0; other < ranks(); ++other) {
    request.notes_to.push_back(static_cast<std::uint64_t>(routing_.experts(other)) * sizeof(std::int64_t));
    request.notes_from.push_back(static_cast<std::uint64_t>(problem_.experts()) * sizeof(std::int64_t));
  }
  pieces_.clear();
  for (int other = 0; other < ranks(); ++other)
    pieces_.emplace_back(
        Pieces::Shape{.experts = problem_.experts(), .capacity = problem_.capacity, .piece_rows = piece_rows});
  request.listener = this;
}

bool MoePlan::route(const std::int32_t* experts, Complaint& complaint) {
  if (problem_.tokens > 0 && experts == nullptr) return complaint = missing_list("experts"), true;
  if (routing_.sort(experts, complaint)) return true;
  for (int owner = 0; owner < ranks(); ++owner)
    copy_counts(exchange().note_to(owner), routing_.counts(owner), routing_.experts(owner));
  return false;
}

void MoePlan::read_note(int rank) {
  std::int64_t* counts = counts_.data() + static_cast<std::int64_t>(rank) * problem_.experts();
  copy_counts(counts, exchange().note_from(rank), problem_.experts());
  pieces_[static_cast<std::size_t>(rank)].cut(counts);
}

}  // namespace plait::fused
