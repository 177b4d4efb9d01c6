#include "runtime/team/neighbor_cells.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/attempt.h"

namespace plait::runtime {
namespace {

// The places of real neighbours, ordered by them.
std::vector<int> cells_of(const std::vector<int>& list, int none) {
  std::vector<int> places;
  for (std::size_t place = 0; place < list.size(); ++place)
    if (list[place] != none) places.push_back(static_cast<int>(place));
  std::ranges::stable_sort(places, {}, [&](int place) { return list[static_cast<std::size_t>(place)]; });
  return places;
}

std::vector<int> without(std::vector<int> list, int none) {
  std::erase(list, none);
  return list;
}

int most_of_one(std::vector<int> list) {
  std::ranges::sort(list);
  int most = 0, now = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    now = i > 0 && list[i] == list[i - 1] ? now + 1 : 1;
    most = std::max(most, now);
  }
  return most;
}

PairingQuestion question_of(const Neighbors& neighbors) {
  PairingQuestion question;
  const auto places = static_cast<std::size_t>(std::max({neighbors.destinations, neighbors.sources, 1}));
  question.send.resize(places);
  question.receive.resize(places);
  question.counts.assign(places, 1);
  question.places.resize(places);
  std::iota(question.places.begin(), question.places.end(), 0);
  std::vector<int> ordered = neighbors.lists.destinations;
  std::ranges::sort(ordered);
  int of_pair = 0;
  for (std::size_t cell = 0; cell < neighbors.send_cells.size(); ++cell) {
    of_pair = cell > 0 && ordered[cell] == ordered[cell - 1] ? of_pair + 1 : 0;
    question.send[static_cast<std::size_t>(neighbors.send_cells[cell])] = of_pair;
  }
  return question;
}

// Within the edges from one source, which stand side by side.
void order_by_answer(std::vector<int>& cells, const std::vector<int>& sources, const std::vector<int>& answer) {
  for (std::size_t first = 0; first < cells.size();) {
    std::size_t last = first + 1;
    while (last < cells.size() && sources[last] == sources[first]) ++last;
    std::sort(cells.begin() + static_cast<std::ptrdiff_t>(first), cells.begin() + static_cast<std::ptrdiff_t>(last),
              [&](int a, int b) { return answer[static_cast<std::size_t>(a)] < answer[static_cast<std::size_t>(b)]; });
    first = last;
  }
}

}  // namespace

Neighbors neighbors_from(EdgeLists lists, int none) {
  Neighbors neighbors;
  neighbors.destinations = static_cast<int>(lists.destinations.size());
  neighbors.sources = static_cast<int>(lists.sources.size());
  neighbors.send_cells = cells_of(lists.destinations, none);
  neighbors.receive_cells = cells_of(lists.sources, none);
  neighbors.lists = {.destinations = without(std::move(lists.destinations), none),
                     .sources = without(std::move(lists.sources), none)};
  neighbors.most_to_one_rank = most_of_one(neighbors.lists.destinations);
  return neighbors;
}

Status pair_edges(Oob& oob, Neighbors& neighbors, const AskHost& ask) noexcept {
  PairingQuestion question;
  std::vector<int> sources;
  const Status room = attempt([&]() -> Status {
    question = question_of(neighbors);
    sources = neighbors.lists.sources;
    std::ranges::sort(sources);
    for (std::vector<int>& cells : neighbors.paired_cells) cells = neighbors.receive_cells;
    return {};
  });
  if (Status status = oob.go_on_together(room); !status.ok()) return status;
  bool well = true;  // all questions are asked by all ranks
  for (std::size_t kind = 0; kind < Pairing::kinds; ++kind)
    for (const bool posted : {false, true}) {
      well = ask(question, kind, posted) && well;
      order_by_answer(neighbors.paired_cells[kind * Pairing::forms + (posted ? 1 : 0)], sources, question.receive);
    }
  const Status mine = attempt([&]() -> Status {
    return well ? Status() : Status(Code::unavailable, "the host's neighbourhood collectives fail");
  });
  return oob.go_on_together(mine);
}

}  // namespace plait::runtime
