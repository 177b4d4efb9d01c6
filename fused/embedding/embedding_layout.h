// Whose bags are whose, in both directions of an embedding: the tables of all ranks side by side are the columns, the
// samples of the batch the rows, and what a rank with tables has in common with a rank with samples is a pane.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "fused/embedding/arguments.h"
#include "fused/layer.h"
#include "fused/run/plan_costs.h"
#include "fused/tiles/slice_size.h"
#include "fused/tiles/tiles.h"
#include "runtime/oob/oob.h"

namespace plait::fused {

class EmbeddingLayout {
 public:
  // Collective: the ranks exchange how many tables they have. Fails on all or on none.
  Status meet(Oob& oob, const EmbeddingProblem& problem);
  // Before panes are asked for. `node_of`: by rank.
  void place(const std::vector<int>& node_of, const PlanCosts& costs);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  const std::vector<int>& node_of() const { return node_of_; }  // by rank

  std::int64_t tables_of(int rank) const { return first_table(rank + 1) - first_table(rank); }
  // Among all ranks' tables.
  std::int64_t first_table(int rank) const { return first_table_[static_cast<std::size_t>(rank)]; }
  Range samples_of(int rank) const { return share_of(batch_, ranks_, rank); }

  // Bytes of one bag's f32; from one sample to the next, where all ranks' tables lie side by side.
  std::uint64_t cell_bytes() const { return cell_bytes_; }
  std::uint64_t pitch() const { return static_cast<std::uint64_t>(first_table_.back()) * cell_bytes_; }

  // Of this rank's samples.
  std::uint64_t end_bytes() const { return static_cast<std::uint64_t>(samples_of(rank_).length()) * pitch(); }

  // Rows: samples of the one; columns: tables of the other. Both cut alike.
  struct Pair {
    int of_tables, of_samples;
  };
  Pane pane_of(const Pair& pair) const;
  // Where a box of it begins in the rows of samples.
  std::uint64_t offset_of(const Box& box, const Pair& pair) const;

 private:
  int rank_ = 0, ranks_ = 1;
  std::int64_t batch_ = 0;
  std::uint64_t cell_bytes_ = 0;
  std::size_t slice_bytes_ = 0;            // as the program wants them; 0: by the cost model
  std::vector<std::int64_t> first_table_;  // by rank; and behind the last one their number
  std::vector<int> node_of_;
  WayCost near_, far_;
};

}  // namespace plait::fused
