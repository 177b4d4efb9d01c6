#include "plan/overlap/group_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <span>

namespace plait::plan {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
// The pass is merged to so many calls where a first solution is looked for.
constexpr std::size_t few_calls = 96;
// Bounds are sums in another order than what they are compared with.
constexpr double rounding = 1e-9;

// T(i, l, z) for one i and l. Entries before the first chunk at which layer l's gradient exists are infinite.
struct Row {
  std::span<double> excess;  // by z < Z: T - z w; never grows with z
  double* end;               // z = Z: T itself
};

// What a reduction of some calls costs with one share.
struct GroupCost {
  double overlapped = 0;  // P = p + a
  double alone = 0;       // Q = q + a
  double added = 0;       // P (1 - 1/s): to the excess, where it is hidden
  int chunks = 0;         // the fewest that hide it; more than Z: none do
};

class GroupSearch {
 public:
  GroupSearch(const BackwardPass& pass, const OverlapModel& model, const GroupSearchOptions& options);

  // `known`: the time of a solution; infinite: there is none.
  GroupChoice groups(double known);
  GroupChoice shares();

 private:
  // Where a value of a row came from.
  struct Origin {
    std::size_t call = 0;  // l': the calls before the group
    std::size_t share = 0;
    int chunk = 0;  // z'
  };

  std::size_t calls() const { return pass_.bytes.size(); }
  std::size_t index(std::size_t i, std::size_t l) const { return fuses_ ? i * (calls() + 1) + l : l; }
  Row row(std::size_t i, std::size_t l);
  double value(std::size_t i, std::size_t l, int z);
  GroupCost cost(std::size_t from, std::size_t to, std::size_t share) const;
  void start_rows(std::size_t rows);
  void bound_the_rest();
  void fill(std::size_t l);
  void fill_row(std::size_t i, std::size_t l);
  void relax(const Row& from, const GroupCost& cost, std::size_t share, std::size_t l, const Row& to) const;
  void relax_hidden(const Row& from, const GroupCost& cost, std::size_t l, const Row& to) const;
  double hidden_at_end(const Row& from, const GroupCost& cost, std::size_t l) const;
  double end_from(const Row& from, const GroupCost& cost, std::size_t share, int z) const;
  bool hopeless(const Row& from, const GroupCost& cost, std::size_t l) const;
  bool ends_at(const Row& from, const GroupCost& cost, Origin& origin, std::size_t l, int z, double wanted) const;
  Origin origin(std::size_t i, std::size_t l, int z);
  GroupChoice trace(std::size_t i);

  const BackwardPass& pass_;
  const OverlapModel& model_;
  const int groups_;
  const int chunks_;
  const double total_;
  const double chunk_;  // w, seconds
  bool fuses_ = true;
  double known_ = infinite;
  std::vector<double> bytes_before_;           // of the first l calls
  std::vector<int> first_chunk_;               // by l: where its gradient exists
  std::vector<std::vector<double>> computes_;  // by share and d: g(d w, r)
  std::vector<double> excess_, ends_;          // of all rows
  std::vector<bool> improved_;                 // by row: better somewhere than with one group less
  std::vector<double> rest_;                   // by l: what the calls behind the first l add to T at least ...
  std::vector<double> rest_alone_;             // ... and how long they communicate at least
  std::vector<GroupCost> costs_;               // of the groups that end at one call, by l' and share
};

GroupSearch::GroupSearch(const BackwardPass& pass, const OverlapModel& model, const GroupSearchOptions& options)
    : pass_(pass),
      model_(model),
      groups_(static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(options.groups), pass.bytes.size()))),
      chunks_(options.chunks),
      total_(pass.total()),
      chunk_(total_ / options.chunks) {
  bytes_before_.assign(1, 0);
  first_chunk_.assign(1, 0);
  double computed = 0;
  for (std::size_t l = 0; l < calls(); ++l) {
    bytes_before_.push_back(bytes_before_.back() + pass.bytes[l]);
    computed += pass.computation[l];
    first_chunk_.push_back(first_chunk(computed, chunk_, chunks_));
  }
  for (const double slowdown : model.slowdown) {
    std::vector<double>& computes = computes_.emplace_back();
    for (int d = 0; d <= chunks_; ++d) computes.push_back(d * chunk_ * slowdown);
  }
}

Row GroupSearch::row(std::size_t i, std::size_t l) {
  const std::size_t width = static_cast<std::size_t>(chunks_);
  return {std::span(excess_).subspan(index(i, l) * width, width), &ends_[index(i, l)]};
}

// What the trace follows: excess before the last chunk's end, T at it.
double GroupSearch::value(std::size_t i, std::size_t l, int z) {
  return z == chunks_ ? ends_[index(i, l)] : row(i, l).excess[static_cast<std::size_t>(z)];
}

GroupCost GroupSearch::cost(std::size_t from, std::size_t to, std::size_t share) const {
  const double bytes = bytes_before_[to] - bytes_before_[from];
  const ReductionTime time = reduction_time(model_, bytes, to - from > 1 || pass_.is_fused(from), share);
  GroupCost cost{.overlapped = time.overlapped, .alone = time.alone};
  cost.added = cost.overlapped * (1 - 1 / model_.slowdown[share]);
  return cost;
}

// Row (0, 0): nothing is communicated.
void GroupSearch::start_rows(std::size_t rows) {
  excess_.assign(rows * static_cast<std::size_t>(chunks_), infinite);
  ends_.assign(rows, infinite);
  improved_.assign(rows, false);
  std::fill_n(excess_.begin(), chunks_, 0.);
  ends_[0] = total_;
  improved_[0] = true;
}

// A group whose communication is hidden adds `added` to the excess; where a share f of it is exposed,
// (1 - f) added + f Q.
void GroupSearch::bound_the_rest() {
  rest_.assign(calls() + 1, infinite);
  rest_alone_.assign(calls() + 1, infinite);
  rest_[calls()] = rest_alone_[calls()] = 0;
  for (std::size_t from = calls(); from-- > 0;) {
    for (std::size_t to = from + 1; to <= calls(); ++to) {
      double added = infinite, alone = infinite;
      for (std::size_t share = 0; share < model_.shares.size(); ++share) {
        const GroupCost one = cost(from, to, share);
        added = std::min({added, one.added, one.alone});
        alone = std::min({alone, one.overlapped, one.alone});
      }
      rest_[from] = std::min(rest_[from], added + rest_[to]);
      rest_alone_[from] = std::min(rest_alone_[from], alone + rest_alone_[to]);
    }
  }
}

// Whether no solution through this stage is better than the known one.
bool GroupSearch::hopeless(const Row& from, const GroupCost& cost, std::size_t l) const {
  if (known_ == infinite) return false;
  const double limit = known_ * (1 + rounding), least = from.excess.back();
  if (std::min(least + total_, *from.end) + std::min(cost.added, cost.alone) + rest_[l] > limit) return true;
  const double begin = std::min(first_chunk_[l] * chunk_ + least, *from.end);
  return begin + std::min(cost.overlapped, cost.alone) + rest_alone_[l] > limit;
}

// All ends z < Z of a stage at once.
void GroupSearch::relax_hidden(const Row& from, const GroupCost& cost, std::size_t l, const Row& to) const {
  const int begin = first_chunk_[l], first = begin + cost.chunks, count = chunks_ - first;
  if (count <= 0) return;
  const double* before = from.excess.data() + begin;
  double* after = to.excess.data() + first;
  const double added = cost.added, least = before[count - 1] + added;
  // Both rows never grow, so that nothing changes from where `after` is as small as the least that there is to give.
  const double* end = std::partition_point(after, after + count, [&](double other) { return other > least; });
  const std::ptrdiff_t changing = end - after;
  for (std::ptrdiff_t z = 0; z < changing; ++z) {
    const double candidate = before[z] + added;
    after[z] = candidate < after[z] ? candidate : after[z];
  }
}

// The least T(Z) of the stages that hide their communication: the latest begin, because excess never grows with z.
double GroupSearch::hidden_at_end(const Row& from, const GroupCost& cost, std::size_t l) const {
  const int z = chunks_ - cost.chunks;
  return z >= first_chunk_[l] ? from.excess[static_cast<std::size_t>(z)] + cost.added + total_ : infinite;
}

// T(Z) of a stage that begins at chunk z and has communication left over at the end.
double GroupSearch::end_from(const Row& from, const GroupCost& cost, std::size_t share, int z) const {
  if (z == chunks_) return *from.end + cost.alone;
  const double computes = computes_[share][static_cast<std::size_t>(chunks_ - z)];
  return from.excess[static_cast<std::size_t>(z)] + z * chunk_ + computes +
         cost.alone * (1 - computes / cost.overlapped);
}

void GroupSearch::relax(const Row& from, const GroupCost& cost, std::size_t share, std::size_t l, const Row& to) const {
  relax_hidden(from, cost, l, to);
  const double least = std::min(from.excess.back() + total_, *from.end) + std::min(cost.added, cost.alone);
  if (least * (1 - rounding) > *to.end) return;
  double end = std::min(hidden_at_end(from, cost, l), end_from(from, cost, share, chunks_));
  for (int z = std::max(first_chunk_[l], chunks_ - cost.chunks + 1); z < chunks_; ++z)
    end = std::min(end, end_from(from, cost, share, z));
  *to.end = std::min(*to.end, end);
}

void GroupSearch::fill_row(std::size_t i, std::size_t l) {
  const Row to = row(i, l);
  const std::size_t shares = model_.shares.size();
  for (std::size_t from = fuses_ ? i - 1 : l - 1; from < l; ++from) {
    if (!improved_[index(i - 1, from)]) continue;
    const Row before = row(i - 1, from);
    for (std::size_t share = 0; share < shares; ++share) {
      const GroupCost& one = costs_[from * shares + share];
      if (!hopeless(before, one, l)) relax(before, one, share, l, to);
    }
  }
}

// Rows (1..K, l) from the rows of fewer calls.
void GroupSearch::fill(std::size_t l) {
  const std::size_t shares = model_.shares.size();
  costs_.resize(l * shares);
  for (std::size_t from = fuses_ ? 0 : l - 1; from < l; ++from) {
    for (std::size_t share = 0; share < shares; ++share) {
      GroupCost& one = costs_[from * shares + share] = cost(from, l, share);
      const std::vector<double>& computes = computes_[share];
      one.chunks =
          static_cast<int>(std::lower_bound(computes.begin() + 1, computes.end(), one.overlapped) - computes.begin());
    }
  }
  if (!fuses_) {
    improved_[l] = true;
    return fill_row(l, l);
  }
  for (std::size_t i = 1; i <= static_cast<std::size_t>(groups_); ++i) {
    const Row to = row(i, l), fewer = row(i - 1, l);
    std::copy(fewer.excess.begin(), fewer.excess.end(), to.excess.begin());  // a group of no calls
    *to.end = *fewer.end;
    fill_row(i, l);
    improved_[index(i, l)] =
        *to.end < *fewer.end || !std::equal(to.excess.begin(), to.excess.end(), fewer.excess.begin());
  }
}

// Whether the stage gives row entry z its value, and from which chunk on.
bool GroupSearch::ends_at(const Row& from, const GroupCost& cost, Origin& origin, std::size_t l, int z,
                          double wanted) const {
  if (z < chunks_) {
    origin.chunk = z - cost.chunks;
    return origin.chunk >= first_chunk_[l] &&
           from.excess[static_cast<std::size_t>(origin.chunk)] + cost.added == wanted;
  }
  origin.chunk = chunks_ - cost.chunks;
  if (hidden_at_end(from, cost, l) == wanted) return true;
  for (origin.chunk = std::max(first_chunk_[l], origin.chunk + 1); origin.chunk <= chunks_; ++origin.chunk)
    if (end_from(from, cost, origin.share, origin.chunk) == wanted) return true;
  return false;
}

// Precondition: the value is no copy of that with one group less.
GroupSearch::Origin GroupSearch::origin(std::size_t i, std::size_t l, int z) {
  const double wanted = value(i, l, z);
  Origin origin;
  for (origin.call = fuses_ ? i - 1 : l - 1; origin.call < l; ++origin.call) {
    for (origin.share = 0; origin.share < model_.shares.size(); ++origin.share) {
      GroupCost one = cost(origin.call, l, origin.share);
      const std::vector<double>& computes = computes_[origin.share];
      one.chunks =
          static_cast<int>(std::lower_bound(computes.begin() + 1, computes.end(), one.overlapped) - computes.begin());
      if (ends_at(row(i - 1, origin.call), one, origin, l, z, wanted)) return origin;
    }
  }
  assert(!"a value comes from somewhere");
  return origin;
}

// GatherResults of Algorithm 1. What a value came from is found again where it is needed, at K places: keeping it for
// all would take more memory than the values.
GroupChoice GroupSearch::trace(std::size_t i) {
  GroupChoice choice{.groups = {}, .chunked_seconds = ends_[index(i, calls())]};
  int z = chunks_;
  for (std::size_t l = calls(); l > 0; --i) {
    while (fuses_ && value(i - 1, l, z) == value(i, l, z)) --i;
    const Origin from = origin(i, l, z);
    choice.groups.push_back({from.call, l - from.call, model_.shares[from.share]});
    l = from.call;
    z = from.chunk;
  }
  std::reverse(choice.groups.begin(), choice.groups.end());
  return choice;
}

GroupChoice GroupSearch::groups(double known) {
  start_rows((static_cast<std::size_t>(groups_) + 1) * (calls() + 1));
  known_ = known;
  if (known_ < infinite) bound_the_rest();
  for (std::size_t l = 1; l <= calls(); ++l) fill(l);
  return trace(static_cast<std::size_t>(groups_));
}

GroupChoice GroupSearch::shares() {
  fuses_ = false;
  start_rows(calls() + 1);
  for (std::size_t l = 1; l <= calls(); ++l) fill(l);
  return trace(calls());
}

// Neighbours become one, so that few are left.
std::vector<OverlapGroup> few_groups(std::size_t calls) {
  std::vector<OverlapGroup> groups;
  for (std::size_t i = 0; i < few_calls; ++i) {
    const std::size_t begin = i * calls / few_calls, end = (i + 1) * calls / few_calls;
    groups.push_back({begin, end - begin, {}});
  }
  return groups;
}

}  // namespace

int first_chunk(double computed, double chunk_seconds, int chunks) {
  // Sums of the same figures in another order differ in the last bits.
  const double edge = computed / chunk_seconds * (1 - rounding);
  return std::clamp(static_cast<int>(std::ceil(edge)), 1, chunks);
}

GroupChoice choose_groups(const BackwardPass& pass, const OverlapModel& model, const GroupSearchOptions& options) {
  GroupSearch search(pass, model, options);
  double known = infinite;
  if (pass.bytes.size() > few_calls)
    known = choose_groups(fused(pass, few_groups(pass.bytes.size())), model, options).chunked_seconds;
  return search.groups(known);
}

GroupChoice choose_shares(const BackwardPass& pass, const OverlapModel& model, int chunks) {
  return GroupSearch(pass, model, {.chunks = chunks}).shares();
}

}  // namespace plait::plan
