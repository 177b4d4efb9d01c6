// A fused embedding's backward direction against what it replaces, in turn in one job: the pass that brings gradients
// into the order in which MPI_Alltoall sends, the host's all-to-all or Plait's, and then the same kernel, which adds
// them to the rows of the tables; the same in chunks of the tables with non-blocking collectives; the additions alone,
// the communication alone, and what the memory gives a plain read. Medians of rounds of the slowest rank's time. One
// line of JSON.
//
//   mpirun -n N fused_back_loop [--batch 1024] [--tables 64] [--dim 256] [--pooling 32] [--rows 4096] [--type f32|bf16]
//                               [--chunks 2,4,8] [--rounds 11] [--options "workers=1"] [--private] [--large-pages]
#include <cstring>

#include "fused/kernels/scatter.h"
#include "perf/fused_bags.h"

namespace {

using namespace fused_timing;

// What this rank's samples' rows of all ranks' tables have of some tables of each rank, rank after rank, as
// MPI_Alltoall sends it.
void by_rank(const Settings& settings, const Range& tables, const float* from, float* to) {
  const std::int64_t samples = settings.batch / world_ranks;
  const std::int64_t run = tables.length() * settings.dim;
  for (std::int64_t rank = 0; rank < world_ranks; ++rank)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      std::memcpy(to + (rank * samples + sample) * run,
                  from + ((sample * world_ranks + rank) * settings.tables + tables.begin) * settings.dim,
                  static_cast<std::size_t>(run) * sizeof(float));
}

class Additions {
 public:
  Additions(const Settings& settings, const Model& model)
      : settings_(settings),
        model_(model),
        kernel_(plait::fused::scatter_kernel(settings.row_type(), false)),
        table_bytes_(model.memory().size() / static_cast<std::size_t>(settings.tables)) {}

  // To some tables, of gradients by sample and in it by table; a table after the other, as a fused run does.
  void add(const Range& tables, const float* gradients) const {
    constexpr std::int64_t bags_at_once = 8;
    const std::int64_t pitch = tables.length() * settings_.dim;
    for (std::int64_t table = tables.begin; table < tables.end; ++table)
      for (std::int64_t bag = 0; bag < settings_.batch; bag += bags_at_once)
        kernel_({.table = model_.memory().data() + static_cast<std::size_t>(table) * table_bytes_,
                 .row_elements = settings_.dim,
                 .columns = settings_.dim,
                 .indices = model_.indices().data(),
                 .weights = nullptr,
                 .offsets = model_.offsets().data() + table * settings_.batch + bag,
                 .bags = std::min(bags_at_once, settings_.batch - bag),
                 .next_end = model_.offsets()[static_cast<std::size_t>((table + 1) * settings_.batch)],
                 .gradients = reinterpret_cast<const std::byte*>(gradients + bag * pitch +
                                                                 (table - tables.begin) * settings_.dim),
                 .pitch = pitch * static_cast<std::ptrdiff_t>(sizeof(float)),
                 .factor = 1,
                 .mean = false});
  }

 private:
  const Settings& settings_;
  const Model& model_;
  plait::fused::ScatterKernel kernel_;
  std::size_t table_bytes_;
};

// What fused runs replace: the gradients of all ranks by an all-to-all, and then the kernel.
class Separate {
 public:
  Separate(const Settings& settings, const Model& model)
      : settings_(settings),
        model_(model),
        additions_(settings, model),
        floats_(static_cast<std::size_t>(settings.batch * settings.tables * settings.dim)),
        gradients_(make_floats(floats_, settings.private_output)),
        sent_(make_floats(floats_, settings.private_output)),
        received_(make_floats(floats_, settings.private_output)) {
    constexpr std::size_t values = 3;
    for (std::size_t i = 0; i < floats_; ++i)
      gradients_[i] = static_cast<float>((i + static_cast<std::size_t>(world_rank)) % values);
  }

  const float* gradients() const { return gradients_; }
  void exchange(bool by_plait) const {
    const int each = static_cast<int>(floats_ / static_cast<std::size_t>(world_ranks));
    by_rank(settings_, all_tables(), gradients_, sent_);
    by(by_plait, [&] { MPI_Alltoall(sent_, each, MPI_FLOAT, received_, each, MPI_FLOAT, MPI_COMM_WORLD); });
  }
  void add() const { model_.check(), additions_.add(all_tables(), received_); }
  void in_chunks(int chunks) const {
    const auto some = [&](int chunk) { return share_of(settings_.tables, chunks, chunk); };
    const auto place = [&](int chunk) { return some(chunk).begin * settings_.batch * settings_.dim; };
    model_.check();
    const auto begin = [&](int chunk, MPI_Request& request) {
      by_rank(settings_, some(chunk), gradients_, sent_ + place(chunk));
      const auto count = static_cast<int>(settings_.batch / world_ranks * some(chunk).length() * settings_.dim);
      MPI_Ialltoall(sent_ + place(chunk), count, MPI_FLOAT, received_ + place(chunk), count, MPI_FLOAT, MPI_COMM_WORLD,
                    &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) { additions_.add(some(chunk), received_ + place(chunk)); });
  }

 private:
  Range all_tables() const { return {0, settings_.tables}; }

  const Settings& settings_;
  const Model& model_;
  Additions additions_;
  std::size_t floats_;
  float *gradients_, *sent_, *received_;
};

plait_fused planned(const Model& model, const float* gradients, const std::string& options) {
  const plait_fused_embedding shape = model.shape();
  std::vector<void*> tables;
  for (std::int64_t table = 0; table < shape.tables; ++table) tables.push_back(const_cast<void*>(shape.data[table]));
  plait_fused plan = PLAIT_FUSED_NULL;
  plait_fused_embedding_back_create(MPI_COMM_WORLD, &shape, tables.data(), gradients, options.c_str(), &plan);
  return plan;
}

// Whether all ways leave in tables of zeros what the first one does, on all ranks; the sums of the gradients are exact,
// so that their order does not matter.
bool add_the_same(const std::vector<Way>& ways, const TableMemory& tables) {
  std::vector<std::byte> expected;
  bool same = true;
  for (const Way& way : ways) {
    std::memset(tables.data(), 0, tables.size());
    way.go();
    if (expected.empty()) expected.assign(tables.data(), tables.data() + tables.size());
    same = on_all(std::memcmp(tables.data(), expected.data(), tables.size()) == 0) && same;
  }
  return same;
}

void measure(const Settings& settings) {
  const Model model(settings);
  const Separate separate(settings, model);
  std::memset(model.memory().data(), 0, model.memory().size());
  plait_fused plan = planned(model, separate.gradients(), settings.options);
  plait_fused in_plain_order = planned(model, separate.gradients(), settings.options + " order=plain");
  const auto fused = [&](plait_fused by) {
    plait_fused_embedding_back_run(by, model.indices().data(), model.count(), model.offsets().data(), nullptr, 1);
  };
  std::vector<Way> whole = {{"order, host, kernel", [&] { separate.exchange(false), separate.add(); }},
                            {"fused", [&] { fused(plan); }},
                            {"fused, plain order", [&] { fused(in_plain_order); }},
                            {"order, plait, kernel", [&] { separate.exchange(true), separate.add(); }}};
  add_chunked(whole, settings.chunks, [&](int chunks) { separate.in_chunks(chunks); });
  std::vector<Way> ways = whole;
  ways.push_back({"kernel", [&] { separate.add(); }});
  ways.push_back({"order, host", [&] { separate.exchange(false); }});
  ways.push_back({"order, plait", [&] { separate.exchange(true); }});
  ways.push_back({"check", [&] { model.check(); }});
  const Times times = time_in_turn(ways, settings.rounds);
  nlohmann::json line = line_of(settings, plan);
  put_times(times, line);
  put_rates(settings, model, times, line);
  line["same"] = add_the_same(whole, model.memory());
  print(line);
  plait_fused_free(&in_plain_order);
  plait_fused_free(&plan);
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("fused_back_loop");
  add_options(settings, {"f32", "bf16"}, app);
  CLI11_PARSE(app, argc, argv);
  measure(settings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return job(argc, argv, run); }
