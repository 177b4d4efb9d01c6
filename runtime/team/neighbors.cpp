#include "runtime/team/neighbors.h"

#include <algorithm>
#include <numeric>

namespace plait::runtime {
namespace {

bool is_nobody(int rank) { return rank < 0; }

// The places of real neighbours, ordered by them.
std::vector<int> cells_of(const std::vector<int>& list) {
  std::vector<int> places;
  for (std::size_t place = 0; place < list.size(); ++place)
    if (!is_nobody(list[place])) places.push_back(static_cast<int>(place));
  std::ranges::stable_sort(places, {}, [&](int place) { return list[static_cast<std::size_t>(place)]; });
  return places;
}

std::vector<int> of_somebody(std::vector<int> list) {
  std::erase_if(list, is_nobody);
  return list;
}

std::vector<int> sorted(std::vector<int> list) {
  std::ranges::sort(list);
  return list;
}

int most_of_one(const std::vector<int>& ranks) {
  const std::vector<int> list = sorted(ranks);
  int most = 0, now = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    now = i > 0 && list[i] == list[i - 1] ? now + 1 : 1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

Neighbors neighbors_of(const NeighborLists& lists) {
  Neighbors neighbors;
  neighbors.destinations = static_cast<int>(lists.destinations.size());
  neighbors.sources = static_cast<int>(lists.sources.size());
  neighbors.send_cells = cells_of(lists.destinations);
  neighbors.receive_cells = cells_of(lists.sources);
  neighbors.lists = {.destinations = of_somebody(lists.destinations), .sources = of_somebody(lists.sources)};
  neighbors.most_to_one_rank = most_of_one(neighbors.lists.destinations);
  return neighbors;
}

EdgeQuestion question_of(const Neighbors& neighbors) {
  EdgeQuestion question;
  const auto places = static_cast<std::size_t>(std::max({neighbors.destinations, neighbors.sources, 1}));
  question.send.resize(places);
  question.receive.resize(places);
  question.counts.assign(places, 1);
  question.offsets.resize(places);
  std::iota(question.offsets.begin(), question.offsets.end(), 0);
  question.sources = sorted(neighbors.lists.sources);
  const std::vector<int> ordered = sorted(neighbors.lists.destinations);
  int of_pair = 0;
  for (std::size_t cell = 0; cell < neighbors.send_cells.size(); ++cell) {
    of_pair = cell > 0 && ordered[cell] == ordered[cell - 1] ? of_pair + 1 : 0;
    question.send[static_cast<std::size_t>(neighbors.send_cells[cell])] = of_pair;
  }
  return question;
}

// Edges from one source stand side by side.
void order_by_answer(std::vector<int>& cells, const EdgeQuestion& answered) {
  const auto answer = [&](int cell) { return answered.receive[static_cast<std::size_t>(cell)]; };
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t last = first + 1;
    while (last < cells.size() && answered.sources[last] == answered.sources[first]) ++last;
    std::sort(cells.begin() + static_cast<std::ptrdiff_t>(first), cells.begin() + static_cast<std::ptrdiff_t>(last),
              [&](int a, int b) { return answer(a) < answer(b); });
    first = last;
  }
}

}  // namespace plait::runtime
