// Data of a device on their way while a schedule of copies runs: what arrives, what waits, what fails. The driver is
// the tests' own, loaded in each test's process.
#include "runtime/device/device_flow.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"
#include "tl/device/device_memory.h"
#include "tl/engine.h"
#include "tl/trace.h"

namespace plait::runtime {
namespace {

class Fake {
 public:
  Fake() : library_(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) {
    CUcontext context = nullptr;
    function<decltype(cuInit)>("cuInit")(0);
    function<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    function<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
  }
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  std::byte* allocate(std::size_t bytes) const {
    CUdeviceptr made = 0;
    function<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&made, bytes);
    return reinterpret_cast<std::byte*>(made);
  }
  std::byte* data(const std::byte* address) const {
    return static_cast<std::byte*>(function<decltype(fake_cuda_data)>("fake_cuda_data")(address));
  }
  static constexpr int out_of_memory = 2, illegal_address = 700;
  void fail(const char* name, long calls, int result = illegal_address) const {
    function<decltype(fake_cuda_fail)>("fake_cuda_fail")(name, calls, result);
  }
  long copies() const { return function<decltype(fake_cuda_copies)>("fake_cuda_copies")(); }
  long kernels() const { return function<decltype(fake_cuda_kernels)>("fake_cuda_kernels")(); }

 private:
  void* library_;
};

// Copies of equal pieces, in the given order, from the input to the output.
BoundSchedule copies(std::size_t bytes, const std::vector<std::size_t>& order, bool backwards = false) {
  BoundSchedule schedule;
  const std::size_t piece = bytes / order.size();
  for (const std::size_t index : order) {
    const auto first = static_cast<std::uint32_t>(schedule.spans.size());
    const std::size_t to = backwards ? order.size() - 1 - index : index;
    schedule.spans.push_back({index * piece, piece, Space::input});
    schedule.spans.push_back({to * piece, piece, Space::output});
    BoundStep step{};
    step.kind = StepKind::copy;
    step.collective = -1;
    step.lane = -1;
    step.source = {first, 1};
    step.destination = {first + 1, 1};
    step.bytes = piece;
    schedule.steps.push_back(step);
  }
  schedule.input_bytes = schedule.output_bytes = bytes;
  return schedule;
}

std::vector<std::size_t> shuffled(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(),
               std::mt19937(static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed())));
  return order;
}

class DeviceFlowTest : public ::testing::Test {
 protected:
  void load() {
    fake_ = std::make_unique<Fake>();
    ASSERT_TRUE(look_for_device_driver());
  }
  std::byte* numbered(std::size_t bytes) {
    std::byte* device = fake_->allocate(bytes);
    auto* numbers = reinterpret_cast<int*>(fake_->data(device));
    std::iota(numbers, numbers + bytes / sizeof(int), 1);
    return device;
  }
  void begin(const std::byte* device) {
    driver_ = device_of(device);
    ASSERT_NE(driver_, nullptr);
    flow_.follow_program(*driver_, driver_->memory_at(device));
    ASSERT_TRUE(flow_.start().ok());
  }
  static void fill(DeviceView& view, const DeviceDriver& driver, std::byte* device, std::size_t bytes) {
    view.start(driver, driver.memory_at(device), {.bytes = 1, .extent = 1});
    view.add(device, bytes);
  }
  Status run(const BoundSchedule& schedule, std::byte* input, std::byte* output, bool hold = false) {
    const Buffers buffers{.base = {input, output, nullptr}, .flow = &flow_};
    flow_.begin(schedule, buffers, hold);
    tl::Engine engine({}, {});
    return engine.run(schedule, buffers, nullptr, nullptr);
  }

  std::unique_ptr<Fake> fake_;
  const DeviceDriver* driver_ = nullptr;
  DeviceFlow flow_;
};

constexpr std::size_t bytes = std::size_t{3} << 20;

TEST_F(DeviceFlowTest, BringsWhatStepsReadAndTakesWhatTheyHaveWritten) {
  load();
  std::byte* from = numbered(bytes);
  std::byte* to = fake_->allocate(bytes);
  std::vector<std::byte> input(bytes), output(bytes);
  for (int call = 0; call < 3; ++call) {
    begin(from);
    fill(flow_.bring(input.data()), *driver_, from, bytes);
    fill(flow_.take(output.data()), *driver_, to, bytes);
    std::memset(fake_->data(to), 0, bytes);
    ASSERT_TRUE(run(copies(bytes, shuffled(48)), input.data(), output.data()).ok());
    flow_.end();
    EXPECT_EQ(std::memcmp(fake_->data(from), fake_->data(to), bytes), 0);
  }
}

// The input is a part of the output, which other steps write: what they write is not written over.
TEST_F(DeviceFlowTest, KeepsWhatStandsInPlace) {
  load();
  constexpr std::size_t parts = 3, part = bytes / parts + 100;
  std::byte* device = numbered(parts * part);
  std::vector<std::byte> output(parts * part);
  begin(device);
  fill(flow_.bring(output.data() + part), *driver_, device + part, part);
  fill(flow_.take(output.data()), *driver_, device, parts * part);
  BoundSchedule schedule;
  for (const std::size_t to : {std::size_t{0}, 2 * part}) {
    const auto first = static_cast<std::uint32_t>(schedule.spans.size());
    schedule.spans.push_back({0, part, Space::input});
    schedule.spans.push_back({to, part, Space::output});
    BoundStep step{};
    step.kind = StepKind::copy;
    step.collective = step.lane = -1;
    step.source = {first, 1};
    step.destination = {first + 1, 1};
    step.bytes = part;
    schedule.steps.push_back(step);
  }
  std::vector<std::byte> own(part);
  std::memcpy(own.data(), fake_->data(device) + part, part);
  ASSERT_TRUE(run(schedule, output.data() + part, output.data()).ok());
  for (std::size_t i = 0; i < parts; ++i)
    EXPECT_EQ(std::memcmp(fake_->data(device) + i * part, own.data(), part), 0) << i;
}

// Both sides lie in the same memory, in another order.
TEST_F(DeviceFlowTest, HoldsResultsUntilAllIsRead) {
  load();
  std::byte* device = numbered(bytes);
  const std::vector<std::byte> before(fake_->data(device), fake_->data(device) + bytes);
  std::vector<std::byte> input(bytes), output(bytes);
  begin(device);
  fill(flow_.bring(input.data()), *driver_, device, bytes);
  fill(flow_.take(output.data()), *driver_, device, bytes);
  constexpr std::size_t pieces = 48, piece = bytes / pieces;
  ASSERT_TRUE(run(copies(bytes, shuffled(pieces), true), input.data(), output.data(), true).ok());
  for (std::size_t i = 0; i < pieces; ++i)
    ASSERT_EQ(std::memcmp(fake_->data(device) + i * piece, &before[(pieces - 1 - i) * piece], piece), 0) << i;
}

TEST_F(DeviceFlowTest, ComesAfterWhatTheProgramHasGivenTheDevice) {
  load();
  std::byte* device = numbered(bytes);
  CUfunction add = nullptr;
  fake_->function<decltype(cuModuleGetFunction)>("cuModuleGetFunction")(&add, nullptr, "fake_add");
  auto address = reinterpret_cast<CUdeviceptr>(device);
  unsigned count = bytes / sizeof(int);
  int term = 1000;
  std::array<void*, 3> parameters{&address, &count, &term};
  fake_->function<decltype(cuLaunchKernel)>("cuLaunchKernel")(add, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(),
                                                              nullptr);
  std::vector<std::byte> input(bytes), output(bytes);
  begin(device);
  fill(flow_.bring(input.data()), *driver_, device, bytes);
  ASSERT_TRUE(run(copies(bytes, shuffled(48)), input.data(), output.data()).ok());
  const auto* numbers = reinterpret_cast<const int*>(output.data());
  EXPECT_EQ(numbers[0], 1001);
  EXPECT_EQ(numbers[count - 1], static_cast<int>(count) + 1000);
}

TEST_F(DeviceFlowTest, SaysWhyItFails) {
  load();
  for (const char* what : {"cuMemcpyAsync", "execution", "cuEventRecord", "cuEventQuery"}) {
    std::byte* device = numbered(bytes);
    std::vector<std::byte> input(bytes), output(bytes);
    begin(device);
    fill(flow_.bring(input.data()), *driver_, device, bytes);
    fake_->fail(what, 3);
    const Status failed = run(copies(bytes, shuffled(48)), input.data(), output.data());
    EXPECT_FALSE(failed.ok()) << what;
    EXPECT_NE(failed.message().find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << what << failed.message();
    flow_.abandon();
    EXPECT_EQ(fake_->function<decltype(fake_cuda_pending)>("fake_cuda_pending")(), 0) << what;
    flow_.end();
    fake_->fail(what, -1);
  }
}

// A device without room for what a call needs, and with room again.
TEST_F(DeviceFlowTest, SaysThatTheDeviceHasNoMemory) {
  load();
  std::byte* device = numbered(bytes);
  driver_ = device_of(device);
  for (const char* what : {"cuEventCreate", "cuStreamCreate"}) {
    for (const long calls : {0, 1}) {
      DeviceFlow flow;
      fake_->fail(what, calls, Fake::out_of_memory);
      flow.follow_program(*driver_, driver_->memory_at(device));
      const Status failed = flow.start();
      EXPECT_FALSE(failed.ok()) << what;
      EXPECT_NE(failed.message().find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << what << failed.message();
      fake_->fail(what, -1);
    }
  }
  std::vector<std::byte> input(bytes), output(bytes);
  begin(device);
  fill(flow_.bring(input.data()), *driver_, device, bytes);
  EXPECT_TRUE(run(copies(bytes, shuffled(48)), input.data(), output.data()).ok());
  flow_.end();
}

// ---- Views ----

struct Shape {
  const char* name;
  std::vector<ByteRun> runs;
  std::ptrdiff_t extent;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all{{"a column", {{0, 8}}, 64},
                         {"rows that end", {{4, 12}, {36, 12}, {68, 12}}, 100},
                         {"rows that go on", {{0, 16}, {32, 16}}, 64},
                         {"backwards", {{64, 4}, {0, 4}}, 128},
                         {"bytes", {{3, 1}, {7, 2}, {20, 5}}, 33}};
  std::mt19937 random(static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed()));
  Shape drawn{"drawn", {}, 0};
  std::ptrdiff_t at = 0;
  for (int run = 0; run < 50; ++run) {
    at += static_cast<std::ptrdiff_t>(random() % 40);
    const std::size_t length = 1 + random() % 60;
    drawn.runs.push_back({at, length});
    at += static_cast<std::ptrdiff_t>(length);
  }
  drawn.extent = at + 5;
  all.push_back(drawn);
  return all;
}

void pack_by_hand(const Shape& shape, std::size_t count, const std::byte* elements, std::vector<std::byte>& packed) {
  packed.clear();
  for (std::size_t element = 0; element < count; ++element)
    for (const ByteRun& run : shape.runs) {
      const std::byte* from = elements + static_cast<std::ptrdiff_t>(element) * shape.extent + run.begin;
      packed.insert(packed.end(), from, from + run.bytes);
    }
}

// In three parts, whose bounds lie anywhere.
void compare_views(Fake& fake, bool kernels) {
  for (const Shape& shape : shapes())
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}}) {
      const auto span = static_cast<std::size_t>(shape.extent) * count + 200;
      std::byte* device = fake.allocate(span);
      std::mt19937 random(7);
      for (std::size_t i = 0; i < span; ++i) fake.data(device)[i] = static_cast<std::byte>(random());
      const DeviceDriver& driver = *device_of(device);
      const tl::DeviceMemory memory = driver.memory_at(device);
      std::vector<std::byte> expected;
      pack_by_hand(shape, count, fake.data(device), expected);
      DeviceView view;
      view.start(driver, memory, {.bytes = expected.size() / count, .extent = shape.extent, .runs = shape.runs});
      view.add(device, count);
      ASSERT_EQ(view.bytes(), expected.size());
      PinnedMemory packed;
      std::byte* here = packed.reserve(expected.size(), driver, memory);
      auto streams = borrow_streams(driver, memory);
      ASSERT_TRUE(streams.ok());
      tl::DeviceStream& stream = *(*streams)->in.stream;
      const auto finish = [&] {
        tl::DeviceEvent& event = *(*streams)->in.events[0];
        ASSERT_TRUE(stream.record(event).ok());
        Result<bool> passed = false;
        while (passed.ok() && !*passed) passed = event.passed();
        ASSERT_TRUE(passed.ok()) << passed.status().message();
      };
      const std::array<std::uint64_t, 4> bounds{0, expected.size() / 3, expected.size() * 4 / 5, expected.size()};
      const long before = fake.kernels();
      for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(view.bring(stream, here, bounds[i], bounds[i + 1]).ok());
      finish();
      EXPECT_EQ(std::memcmp(here, expected.data(), expected.size()), 0) << shape.name << ", " << count;
      EXPECT_EQ(fake.kernels() > before, kernels);
      // Back: nothing beside the runs changes.
      std::vector<std::byte> whole(fake.data(device), fake.data(device) + span), got;
      for (std::size_t i = 0; i < expected.size(); ++i) here[i] = static_cast<std::byte>(random());
      const std::vector<std::byte> given(here, here + expected.size());
      for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(view.take(stream, here, bounds[i], bounds[i + 1]).ok());
      finish();
      pack_by_hand(shape, count, fake.data(device), got);
      EXPECT_EQ(got, given) << shape.name << ", " << count;
      std::size_t at = 0;
      for (std::size_t element = 0; element < count; ++element)
        for (const ByteRun& run : shape.runs) {
          std::memcpy(whole.data() + static_cast<std::ptrdiff_t>(element) * shape.extent + run.begin, &given[at],
                      run.bytes);
          at += run.bytes;
        }
      EXPECT_EQ(std::memcmp(whole.data(), fake.data(device), span), 0) << shape.name << ", " << count;
      give_back(std::move(*streams));
    }
}

TEST_F(DeviceFlowTest, ViewsAreCopiedByKernels) {
  load();
  compare_views(*fake_, true);
}

TEST_F(DeviceFlowTest, ViewsAreCopiedByRunsAndRowsWithoutKernels) {
  setenv("FAKE_CUDA_KERNELS", "0", 1);
  load();
  compare_views(*fake_, false);
}

TEST_F(DeviceFlowTest, GoesWithoutPinnedMemory) {
  setenv("FAKE_CUDA_PINNED", "1000", 1);
  load();
  std::byte* device = numbered(bytes);
  const DeviceDriver& driver = *device_of(device);
  PinnedMemory memory;
  std::memset(memory.reserve(bytes, driver, driver.memory_at(device)), 1, bytes);
  EXPECT_FALSE(memory.pinned());
  compare_views(*fake_, false);
}

// Of a slow engine one run is enough to cut the next one's data into short pieces.
TEST_F(DeviceFlowTest, LearnsARateFromOneRun) {
  constexpr std::size_t length = std::size_t{1} << 20, shortest = std::size_t{16} << 10;
  constexpr std::uint64_t nominal_ns = 52'000'000;  // of so much at that rate
  setenv("FAKE_CUDA_RATE", "2e7", 1);
  load();
  std::byte* device = numbered(length);
  std::vector<std::byte> input(length), output(length);
  long made = 0;
  for (int time = 0; time < 2; ++time) {
    const long before = fake_->copies();
    const std::uint64_t begin_ns = tl::monotonic_ns();
    begin(device);
    fill(flow_.bring(input.data()), *driver_, device, length);
    ASSERT_TRUE(run(copies(length, {0, 1, 2, 3}), input.data(), output.data()).ok());
    made = fake_->copies() - before;
    flow_.end();
    if (time == 0 && tl::monotonic_ns() - begin_ns > nominal_ns + nominal_ns / 4)
      GTEST_SKIP() << "this process had no processor when the engine was to be looked at";
  }
  EXPECT_EQ(made, static_cast<long>(length / shortest));
  EXPECT_EQ(std::memcmp(output.data(), fake_->data(device), length), 0);
}

}  // namespace
}  // namespace plait::runtime
