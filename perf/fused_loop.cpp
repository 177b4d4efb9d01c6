// A fused embedding against what it replaces, in turn in one job: the same kernel to its end and then the host's
// all-to-all, or Plait's, with the pass over the result that brings it into the next layer's order; the same in chunks
// of the tables with non-blocking collectives; the computation alone, the communication alone, and what the memory
// gives a plain read. Medians of rounds of the slowest rank's time. One line of JSON.
//
//   mpirun -n N fused_loop [--batch 1024] [--tables 64] [--dim 256] [--pooling 32] [--rows 4096] [--type f32|bf16|i8]
//                          [--chunks 2,4,8] [--rounds 11] [--options "workers=1"] [--private] [--large-pages]
#include <cstring>

#include "perf/fused_bags.h"

namespace {

using namespace fused_timing;

// What MPI_Alltoall leaves of some tables, rank after rank, in rows of all ranks' tables.
void shuffle(const Settings& settings, const Range& tables, const float* from, float* to) {
  const std::int64_t samples = settings.batch / world_ranks;
  const std::int64_t run = tables.length() * settings.dim;
  for (std::int64_t rank = 0; rank < world_ranks; ++rank)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      std::memcpy(to + ((sample * world_ranks + rank) * settings.tables + tables.begin) * settings.dim,
                  from + (rank * samples + sample) * run, static_cast<std::size_t>(run) * sizeof(float));
}

// Whether all ranks' `memory` is as `expected` once the way has been gone, all of it written then.
bool leaves(const Way& way, float* memory, const float* expected, std::size_t floats) {
  std::fill_n(memory, floats, -1.0f);
  way.go();
  return on_all(std::memcmp(memory, expected, floats * sizeof(float)) == 0);
}

void measure(const Settings& settings) {
  const Model model(settings);
  const auto floats = static_cast<std::size_t>(settings.batch * settings.tables * settings.dim);
  float* results = make_floats(floats, settings.private_output);
  float* received = make_floats(floats, settings.private_output);
  float* ordered = make_floats(floats, settings.private_output);
  float* output = make_floats(floats, settings.private_output);
  const int each = static_cast<int>(floats / static_cast<std::size_t>(world_ranks));
  const plait_fused_embedding shape = model.shape();
  plait_fused plan = PLAIT_FUSED_NULL;
  plait_fused_embedding_create(MPI_COMM_WORLD, &shape, output, settings.options.c_str(), &plan);
  const std::string plain_order = settings.options + " order=plain";
  plait_fused in_plain_order = PLAIT_FUSED_NULL;
  plait_fused_embedding_create(MPI_COMM_WORLD, &shape, output, plain_order.c_str(), &in_plain_order);
  const auto fused = [&](plait_fused by) {
    plait_fused_embedding_run(by, model.indices().data(), model.count(), model.offsets().data(), nullptr);
  };
  const auto exchange = [&](bool by_plait) {
    by(by_plait, [&] { MPI_Alltoall(results, each, MPI_FLOAT, received, each, MPI_FLOAT, MPI_COMM_WORLD); });
  };
  const auto order = [&] { shuffle(settings, {0, settings.tables}, received, ordered); };
  // Some of the tables, whose results lie together.
  const auto in_chunks = [&](int chunks) {
    const auto tables = [&](int chunk) { return share_of(settings.tables, chunks, chunk); };
    const auto place = [&](int chunk) { return tables(chunk).begin * settings.batch * settings.dim; };
    model.check();
    const auto begin = [&](int chunk, MPI_Request& request) {
      model.compute(tables(chunk), results + place(chunk));
      const auto count = static_cast<int>(settings.batch / world_ranks * tables(chunk).length() * settings.dim);
      MPI_Ialltoall(results + place(chunk), count, MPI_FLOAT, received + place(chunk), count, MPI_FLOAT, MPI_COMM_WORLD,
                    &request);
    };
    go_in_chunks(chunks, begin, [&](int chunk) { shuffle(settings, tables(chunk), received + place(chunk), ordered); });
  };
  const Way aware{"fused", [&] { fused(plan); }}, plain{"fused, plain order", [&] { fused(in_plain_order); }};
  const Way by_host{"kernel, host, order", [&] { model.compute(results), exchange(false), order(); }};
  std::vector<Way> chunked;
  add_chunked(chunked, settings.chunks, in_chunks);
  std::vector<Way> ways = {aware,
                           plain,
                           by_host,
                           {"kernel, host", [&] { model.compute(results), exchange(false); }},
                           {"kernel, plait, order", [&] { model.compute(results), exchange(true), order(); }},
                           {"kernel, plait", [&] { model.compute(results), exchange(true); }},
                           {"kernel", [&] { model.compute(results); }},
                           {"host", [&] { exchange(false); }},
                           {"host, order", [&] { exchange(false), order(); }},
                           {"plait, order", [&] { exchange(true), order(); }},
                           {"check", [&] { model.check(); }}};
  ways.insert(ways.end(), chunked.begin(), chunked.end());
  const Times times = time_in_turn(ways, settings.rounds);
  nlohmann::json line = line_of(settings, plan);
  put_times(times, line);
  put_rates(settings, model, times, line);
  bool same = leaves(by_host, ordered, output, floats);
  for (const Way* way : {&aware, &plain}) same = leaves(*way, output, ordered, floats) && same;
  for (const Way& way : chunked) same = leaves(way, ordered, output, floats) && same;
  line["same"] = same;
  print(line);
  plait_fused_free(&in_plain_order);
  plait_fused_free(&plan);
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("fused_loop");
  add_options(settings, {"f32", "bf16", "i8"}, app);
  CLI11_PARSE(app, argc, argv);
  measure(settings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return job(argc, argv, run); }
