#include "core/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace plait {
namespace {

LoadedConfig load(std::vector<std::string_view> environment) { return load_config(environment); }

std::string only_warning(const LoadedConfig& loaded) {
  EXPECT_EQ(loaded.warnings.size(), 1u);
  return loaded.warnings.empty() ? std::string() : loaded.warnings[0];
}

TEST(Knobs, AreNamedOnceAndDocumented) {
  std::set<std::string_view> names;
  for (const Knob& knob : knobs()) {
    EXPECT_TRUE(knob.name.starts_with("PLAIT_")) << knob.name;
    EXPECT_TRUE(names.insert(knob.name).second) << knob.name;
    EXPECT_FALSE(knob.type.empty()) << knob.name;
    EXPECT_TRUE(knob.help.ends_with('.')) << knob.name;
  }
}

// Config's initialisers and the table's defaults are written twice; they must say the same.
TEST(Config, DefaultsAreThoseOfTheTable) {
  const LoadedConfig loaded = load({});
  EXPECT_TRUE(loaded.warnings.empty());
  const Config& from_table = loaded.config;
  const Config plain;
  EXPECT_EQ(from_table.disable, plain.disable);
  EXPECT_EQ(from_table.report, plain.report);
  EXPECT_EQ(from_table.report_path, plain.report_path);
  EXPECT_EQ(from_table.trace_path, plain.trace_path);
  EXPECT_EQ(from_table.plan, plain.plan);
  EXPECT_EQ(from_table.channels, plain.channels);
  EXPECT_EQ(from_table.single_copy, plain.single_copy);
  EXPECT_EQ(from_table.single_copy_threshold, plain.single_copy_threshold);
  EXPECT_EQ(from_table.segment_bytes, plain.segment_bytes);
  EXPECT_EQ(from_table.chunk_bytes, plain.chunk_bytes);
  EXPECT_EQ(from_table.setup_calls, plain.setup_calls);
  EXPECT_EQ(from_table.leaf_switch, plain.leaf_switch);
  EXPECT_EQ(from_table.host_when_faster, plain.host_when_faster);
  EXPECT_EQ(from_table.trial, plain.trial);
  EXPECT_EQ(from_table.cache, plain.cache);
  EXPECT_EQ(from_table.verbosity, plain.verbosity);
}

// Every default can be given explicitly, so that what `plait config` prints can be exported again.
TEST(Config, TakesEveryDefaultAsAValue) {
  for (const Knob& knob : knobs()) {
    const std::string variable = std::string(knob.name) + "=" + std::string(knob.default_value);
    EXPECT_TRUE(load({variable}).warnings.empty()) << variable;
  }
}

TEST(Config, ReadsEachKnob) {
  const LoadedConfig loaded = load({"HOME=/root",
                                    "PLAIT_DISABLE=yes",
                                    "PLAIT_TRACE=/tmp/trace.json",
                                    "PLAIT_PLAN=ring",
                                    "PLAIT_CHANNELS=mpi,shm,mpi",
                                    "PLAIT_SHARED=malloc",
                                    "PLAIT_SHARED_HEAP_BYTES=2G",
                                    "PLAIT_SINGLE_COPY=cma",
                                    "PLAIT_SINGLE_COPY_THRESHOLD=16K",
                                    "PLAIT_DEVICE_DIRECT=32K",
                                    "PLAIT_SEGMENT_BYTES=64MiB",
                                    "PLAIT_CHUNK_BYTES=4096",
                                    "PLAIT_SETUP_CALLS=0",
                                    "PLAIT_FLAT_RANKS=16",
                                    "PLAIT_PROGRESS_THREADS=3",
                                    "PLAIT_FUSED_WORKERS=4",
                                    "PLAIT_FUSED_BINDING=on",
                                    "PLAIT_HOST=off",
                                    "PLAIT_TRIAL=exact",
                                    "PLAIT_TRIAL_AFTER=5",
                                    "PLAIT_TRIAL_PERCENT=7",
                                    "PLAIT_CACHE=no",
                                    "PLAIT_VERBOSE=3"});
  EXPECT_TRUE(loaded.warnings.empty());
  const Config& config = loaded.config;
  EXPECT_TRUE(config.disable);
  EXPECT_EQ(config.trace_path, "/tmp/trace.json");
  EXPECT_EQ(config.plan, "ring");
  EXPECT_EQ(config.channels, (std::vector<std::string>{"mpi", "shm"}));
  EXPECT_EQ(config.shared, "malloc");
  EXPECT_EQ(config.shared_heap_bytes, std::size_t{2} << 30);
  EXPECT_EQ(config.single_copy, "cma");
  EXPECT_EQ(config.single_copy_threshold, 16384u);
  EXPECT_EQ(config.device_direct_from, 32768u);
  EXPECT_EQ(config.segment_bytes, 64u << 20);
  EXPECT_EQ(config.chunk_bytes, 4096u);
  EXPECT_EQ(config.setup_calls, 0);
  EXPECT_EQ(config.flat_ranks, 16);
  EXPECT_EQ(config.progress_threads, 3);
  EXPECT_EQ(config.fused_workers, 4);
  EXPECT_TRUE(config.fused_binding);
  EXPECT_FALSE(config.host_when_faster);
  EXPECT_EQ(config.trial, TrialMode::exact);
  EXPECT_EQ(config.trial_after, 5);
  EXPECT_EQ(config.trial_percent, 7);
  EXPECT_FALSE(config.cache);
  EXPECT_EQ(config.verbosity, 3);
}

TEST(Config, ReproducibleSettlesWhatMightChangeBits) {
  const Config plain = load({"PLAIT_REPRODUCIBLE=0"}).config;
  EXPECT_EQ(plain.reproducible, Reproducible::no);
  EXPECT_EQ(plain.trial, TrialMode::all);
  const Config run = load({"PLAIT_REPRODUCIBLE=run"}).config;
  EXPECT_EQ(run.reproducible, Reproducible::run);
  EXPECT_EQ(run.trial, TrialMode::exact);
  EXPECT_EQ(run.setup_calls, 3);
  EXPECT_TRUE(run.host_when_faster);
  const Config order = load({"PLAIT_REPRODUCIBLE=order", "PLAIT_SETUP_CALLS=9", "PLAIT_TRIAL=0"}).config;
  EXPECT_EQ(order.reproducible, Reproducible::order);
  EXPECT_EQ(order.trial, TrialMode::none);
  EXPECT_EQ(order.setup_calls, 0);
  EXPECT_FALSE(order.host_when_faster);
  EXPECT_EQ(load({"PLAIT_REPRODUCIBLE=yes"}).warnings.size(), 1u);
}

TEST(Config, ReproducibleFusesNothing) {
  const LoadedConfig loaded = load({"PLAIT_REPRODUCIBLE=run", "PLAIT_OVERLAP=auto", "PLAIT_SCHEDULE=plan.json"});
  EXPECT_TRUE(loaded.config.overlap.empty());
  EXPECT_TRUE(loaded.config.schedule.empty());
  EXPECT_EQ(loaded.warnings.size(), 2u);
}

TEST(Config, TakesTheSwitchFromSlurm) {
  const auto leaf_switch = [](std::string address, std::string pattern) {
    const std::string first = "SLURM_TOPOLOGY_ADDR=" + address, second = "SLURM_TOPOLOGY_ADDR_PATTERN=" + pattern;
    const LoadedConfig loaded = load({second, first});
    EXPECT_TRUE(loaded.warnings.empty());
    return loaded.config.leaf_switch;
  };
  EXPECT_EQ(leaf_switch("s3.node7", "switch.node"), "s3");
  EXPECT_EQ(leaf_switch("top.s3.node7", "switch.switch.node"), "top.s3");
  EXPECT_EQ(leaf_switch("node7", "node"), "");
  EXPECT_EQ(leaf_switch("b1.node7", "block.node"), "");
  EXPECT_EQ(leaf_switch("s3.node7", "switch.switch"), "");
  EXPECT_EQ(leaf_switch("s3.node7.example", "switch.node"), "") << "which dot separates the components is unknown";
  EXPECT_EQ(leaf_switch("", ""), "");
  EXPECT_EQ(load({"SLURM_TOPOLOGY_ADDR=s3.node7"}).config.leaf_switch, "");
}

TEST(Config, TakesTheOnlyGpuThatIsVisible) {
  const auto only = [](std::string value) {
    value.insert(0, "CUDA_VISIBLE_DEVICES=");
    return load({value}).config.only_gpu;
  };
  EXPECT_EQ(only("3"), "3");
  EXPECT_EQ(only("GPU-8932f937"), "GPU-8932f937");
  EXPECT_EQ(only("0,1"), "");
  EXPECT_EQ(only("-1"), "");
  EXPECT_EQ(only("MIG-3cbe"), "") << "a part of one";
  EXPECT_EQ(only(""), "");
  EXPECT_EQ(load({}).config.only_gpu, "");
}

TEST(Config, SwitchOfTheUserComesBeforeSlurms) {
  EXPECT_EQ(load({"SLURM_TOPOLOGY_ADDR=s3.node7", "SLURM_TOPOLOGY_ADDR_PATTERN=switch.node", "PLAIT_SWITCH=left"})
                .config.leaf_switch,
            "left");
}

TEST(Config, KeepsTheCacheWhereTheUserKeepsOthers) {
  EXPECT_EQ(load({"HOME=/home/ada", "XDG_CACHE_HOME=/scratch/ada"}).config.cache_folder, "/scratch/ada/plait");
  EXPECT_EQ(load({"HOME=/home/ada", "XDG_CACHE_HOME=relative"}).config.cache_folder, "/home/ada/.cache/plait");
  EXPECT_EQ(load({"HOME=/home/ada", "XDG_CACHE_HOME="}).config.cache_folder, "/home/ada/.cache/plait");
  EXPECT_EQ(load({}).config.cache_folder, "");
}

TEST(Config, TakesEverySpellingOfAFlag) {
  for (const std::string word : {"1", "true", "yes", "y", "on", "TRUE", "On"}) {
    EXPECT_TRUE(load({"PLAIT_DISABLE=" + word}).config.disable) << word;
  }
  for (const std::string word : {"0", "false", "no", "n", "off", "No"}) {
    EXPECT_FALSE(load({"PLAIT_HOST=" + word}).config.host_when_faster) << word;
  }
}

TEST(Config, ReportIsAFlagOrAPath) {
  EXPECT_FALSE(load({"PLAIT_REPORT=0"}).config.report);
  EXPECT_TRUE(load({"PLAIT_REPORT=1"}).config.report);
  EXPECT_EQ(load({"PLAIT_REPORT=1"}).config.report_path, "");
  const LoadedConfig to_file = load({"PLAIT_REPORT=report.json"});
  EXPECT_TRUE(to_file.config.report);
  EXPECT_EQ(to_file.config.report_path, "report.json");
  EXPECT_EQ(load({"PLAIT_REPORT=./on"}).config.report_path, "./on");
}

TEST(Config, WarnsOnceAboutAnUnknownNameAndSuggestsTheNearest) {
  const LoadedConfig loaded = load({"PLAIT_REPROT=1", "PLAIT_REPROT=1"});
  const std::string warning = only_warning(loaded);
  EXPECT_NE(warning.find("PLAIT_REPROT is not a variable of plait; did you mean PLAIT_REPORT?"), std::string::npos)
      << warning;
  for (const Knob& knob : knobs()) EXPECT_NE(warning.find(knob.name), std::string::npos) << knob.name;
  EXPECT_FALSE(loaded.config.report);
}

TEST(Config, SuggestsNothingWhenNothingIsNear) {
  EXPECT_EQ(only_warning(load({"PLAIT_SOMETHING_QUITE_DIFFERENT=1"})).find("did you mean"), std::string::npos);
  EXPECT_EQ(only_warning(load({"PLAIT_" + std::string(100000, 'X') + "=1"})).find("did you mean"), std::string::npos);
}

TEST(Config, WarnsAboutAValueItCannotUseAndKeepsTheDefault) {
  for (const std::string variable : {"PLAIT_DISABLE=maybe",
                                     "PLAIT_HOST=2",
                                     "PLAIT_SHARED=all",
                                     "PLAIT_SHARED_HEAP_BYTES=much",
                                     "PLAIT_SINGLE_COPY=knem",
                                     "PLAIT_SINGLE_COPY=CMA",
                                     "PLAIT_SINGLE_COPY_THRESHOLD=big",
                                     "PLAIT_DEVICE_DIRECT=always",
                                     "PLAIT_SEGMENT_BYTES=-1",
                                     "PLAIT_CHUNK_BYTES=1.5K",
                                     "PLAIT_PROGRESS_THREADS=0",
                                     "PLAIT_PROGRESS_THREADS=1025",
                                     "PLAIT_PROGRESS_THREADS=two",
                                     "PLAIT_FUSED_WORKERS=1025",
                                     "PLAIT_PROGRESS_DUTY=2",
                                     "PLAIT_SETUP_CALLS=-1",
                                     "PLAIT_SETUP_CALLS=3x",
                                     "PLAIT_FLAT_RANKS=-1",
                                     "PLAIT_SETUP_CALLS=99999999999",
                                     "PLAIT_VERBOSE=4",
                                     "PLAIT_CHANNELS=shm,rdma",
                                     "PLAIT_CHANNELS=shm,",
                                     "PLAIT_CHANNELS=,",
                                     "PLAIT_CHANNELS=shm mpi"}) {
    const LoadedConfig loaded = load({variable});
    const std::string warning = only_warning(loaded);
    EXPECT_TRUE(warning.starts_with(variable + " is ignored: expected ")) << warning;
    EXPECT_EQ(loaded.config.setup_calls, 3);
    EXPECT_EQ(loaded.config.progress_threads, 1);
    EXPECT_EQ(loaded.config.progress_duty, 1);
    EXPECT_EQ(loaded.config.verbosity, 1);
    EXPECT_EQ(loaded.config.channels, (std::vector<std::string>{"shm", "tcp", "ucx", "mpi", "cuda"}));
    EXPECT_EQ(loaded.config.single_copy, "auto");
    EXPECT_FALSE(loaded.config.disable);
    EXPECT_TRUE(loaded.config.host_when_faster);
  }
}

TEST(Config, AnEmptyValueIsNone) {
  for (const Knob& knob : knobs()) EXPECT_TRUE(load({std::string(knob.name) + "="}).warnings.empty()) << knob.name;
  EXPECT_EQ(load({"PLAIT_CHANNELS="}).config.channels.size(), 5u);
}

TEST(Config, TheFirstOccurrenceCountsAsForGetenv) {
  EXPECT_EQ(load({"PLAIT_PLAN=ring", "PLAIT_PLAN=tree"}).config.plan, "ring");
}

TEST(Config, ReadsOnlyItsOwnVariables) {
  EXPECT_TRUE(
      load({"PLAITS=1", "plait_report=1", "XPLAIT_DISABLE=1", "PLAIT_DISABLE", "", "=", "PLAIT=1"}).warnings.empty());
}

TEST(Config, AWarningIsOneShortLineWhateverTheEnvironmentHolds) {
  const std::string warning = only_warning(load({"PLAIT_VERBOSE=a\nb\x1b[31m" + std::string(10000, 'x')}));
  EXPECT_EQ(warning.find_first_of("\n\x1b"), std::string::npos);
  EXPECT_LT(warning.size(), 200u);
}

TEST(Config, ReadsTheProcessEnvironment) {
  ASSERT_EQ(::setenv("PLAIT_PLAN", "from the environment", 1), 0);
  EXPECT_EQ(load_config_from_process().config.plan, "from the environment");
  ASSERT_EQ(::unsetenv("PLAIT_PLAN"), 0);
  EXPECT_EQ(load_config_from_process().config.plan, "");
}

TEST(Config, PreferredEntriesStandBeforeTheEnvironment) {
  ASSERT_EQ(::setenv("PLAIT_PLAN", "from the environment", 1), 0);
  ASSERT_EQ(::setenv("PLAIT_RAILS", "2", 1), 0);
  const std::vector<std::string> preferred = {"PLAIT_PLAN=from the binding", "PLAIT_SETUP_CALLS=7"};
  const LoadedConfig loaded = load_config_from_process(preferred);
  ASSERT_EQ(::unsetenv("PLAIT_RAILS"), 0);
  ASSERT_EQ(::unsetenv("PLAIT_PLAN"), 0);
  EXPECT_EQ(loaded.config.plan, "from the binding");
  EXPECT_EQ(loaded.config.rails, "2");
  EXPECT_EQ(loaded.config.setup_calls, 7);
}

TEST(InitialText, IsTheEnvironmentsElseTheDefault) {
  const auto knob = std::ranges::find(knobs(), "PLAIT_CHUNK_BYTES", &Knob::name);
  ASSERT_NE(knob, knobs().end());
  EXPECT_EQ(initial_text(*knob), "0");
  ASSERT_EQ(::setenv("PLAIT_CHUNK_BYTES", "wrong", 1), 0);
  const std::string given = initial_text(*knob);
  ASSERT_EQ(::setenv("PLAIT_CHUNK_BYTES", "", 1), 0);
  const std::string empty = initial_text(*knob);
  ASSERT_EQ(::unsetenv("PLAIT_CHUNK_BYTES"), 0);
  EXPECT_EQ(given, "wrong");
  EXPECT_EQ(empty, "0");
}

TEST(EffectiveValues, SayWhereEachCameFrom) {
  const std::vector<std::string_view> environment = {"PLAIT_CHUNK_BYTES=64K", "PLAIT_VERBOSE=loud", "PLAIT_PLAN="};
  const std::vector<EffectiveValue> values = effective_values(environment);
  ASSERT_EQ(values.size(), knobs().size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, knobs()[i].name);
    if (values[i].name == "PLAIT_CHUNK_BYTES") {
      EXPECT_EQ(values[i].value, "64K");
      EXPECT_EQ(values[i].origin, "environment");
    } else {
      EXPECT_EQ(values[i].value, knobs()[i].default_value) << values[i].name;
      EXPECT_EQ(values[i].origin, "default") << values[i].name;
    }
  }
}

}  // namespace
}  // namespace plait
