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

// Whether a way leaves in tables of zeros what is `expected`, on all ranks; the sums of the gradients below are exact,
// so that their order does not matter.
bool adds(const Way& way, const TableMemory& tables, const std::byte* expected) {
  std::memset(tables.data(), 0, tables.size());
  way.go();
  return on_all(std::memcmp(tables.data(), expected, tables.size()) == 0);
}

void measure(const Settings& settings) {
  const Model model(settings);
  const Additions additions(settings, model);
  const Range all_tables{0, settings.tables};
  const auto floats = static_cast<std::size_t>(settings.batch * settings.tables * settings.dim);
  float* gradients = make_floats(floats, settings.private_output);
  float* sent = make_floats(floats, settings.private_output);
  float* received = make_floats(floats, settings.private_output);
  constexpr std::size_t values = 3;
  for (std::size_t i = 0; i < floats; ++i)
    gradients[i] = static_cast<float>((i + static_cast<std::size_t>(world_rank)) % values);
  std::memset(model.memory().data(), 0, model.memory().size());
  const int each = static_cast<int>(floats / static_cast<std::size_t>(world_ranks));

  const plait_fused_embedding shape = model.shape();
  std::vector<void*> tables;
  for (std::int64_t table = 0; table < settings.tables; ++table) tables.push_back(const_cast<void*>(shape.data[table]));
  const auto planned = [&](const std::string& options) {
    plait_fused plan = PLAIT_FUSED_NULL;
    plait_fused_embedding_back_create(MPI_COMM_WORLD, &shape, tables.data(), gradients, options.c_str(), &plan);
    return plan;
  };
  plait_fused plan = planned(settings.options), in_plain_order = planned(settings.options + " order=plain");
  const auto fused = [&](plait_fused by) {
    plait_fused_embedding_back_run(by, model.indices().data(), model.count(), model.offsets().data(), nullptr, 1);
  };
  const auto exchange = [&](bool by_plait) {
    by_rank(settings, all_tables, gradients, sent);
    by(by_plait, [&] { MPI_Alltoall(sent, each, MPI_FLOAT, received, each, MPI_FLOAT, MPI_COMM_WORLD); });
  };
  const auto add = [&] { model.check(), additions.add(all_tables, received); };
  const auto in_chunks = [&](int chunks) {
    const auto some = [&](int chunk) { return share_of(settings.tables, chunks, chunk); };
    const auto place = [&](int chunk) { return some(chunk).begin * settings.batch * settings.dim; };
    model.check();
    const auto begin = [&](int chunk, MPI_Request& request) {
      by_rank(settings, some(chunk), gradients, sent + place(chunk));
      const auto count = static_cast<int>(settings.batch / world_ranks * some(chunk).length() * settings.dim);
      MPI_Ialltoall(sent + place(chunk), count, MPI_FLOAT, received + place(chunk), count, MPI_FLOAT, MPI_COMM_WORLD,
                    &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) { additions.add(some(chunk), received + place(chunk)); });
  };

  const Way aware{"fused", [&] { fused(plan); }}, plain{"fused, plain order", [&] { fused(in_plain_order); }};
  const Way by_host{"order, host, kernel", [&] { exchange(false), add(); }};
  const Way by_plait{"order, plait, kernel", [&] { exchange(true), add(); }};
  std::vector<Way> chunked;
  add_chunked(chunked, settings.chunks, in_chunks);
  std::vector<Way> ways = {aware,
                           plain,
                           by_host,
                           by_plait,
                           {"kernel", add},
                           {"order, host", [&] { exchange(false); }},
                           {"order, plait", [&] { exchange(true); }},
                           {"check", [&] { model.check(); }}};
  ways.insert(ways.end(), chunked.begin(), chunked.end());
  const Times times = time_in_turn(ways, settings.rounds);
  nlohmann::json line = line_of(settings, plan);
  put_times(times, line);
  put_rates(settings, model, times, line);

  std::memset(model.memory().data(), 0, model.memory().size());
  by_host.go();
  const std::vector<std::byte> expected(model.memory().data(), model.memory().data() + model.memory().size());
  bool same = true;
  for (const Way* way : {&aware, &plain, &by_plait}) same = adds(*way, model.memory(), expected.data()) && same;
  for (const Way& way : chunked) same = adds(way, model.memory(), expected.data()) && same;
  line["same"] = same;
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
