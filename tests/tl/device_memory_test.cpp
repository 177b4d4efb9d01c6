// What an address is, in processes with and without a driver, and copies by it. The driver is the fake one, loaded in
// the course of the test as a program would.
#include "tl/device/device_memory.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"
#include "tl/device/library_watch.h"

// In the place of the C library's, as UCX's memory hooks are: who calls it pays a system call.
static std::atomic<int> calls_of_sbrk{0};
extern "C" void* sbrk(std::intptr_t increment) noexcept {
  ++calls_of_sbrk;
  static const auto real = reinterpret_cast<void* (*)(std::intptr_t)>(dlsym(RTLD_NEXT, "sbrk"));
  return real(increment);
}

namespace plait::tl {
namespace {

constexpr std::size_t bytes = 1 << 20;

// The system's clock ticks at least ten times a second.
void wait_for_tick() { usleep(120'000); }

class FakeCuda {
 public:
  FakeCuda() : library_(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    CUcontext context = nullptr;
    function<decltype(cuInit)>("cuInit")(0);
    function<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0);
    function<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent")(context);
  }
  bool loaded() const { return library_ != nullptr; }
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  std::byte* allocate() const {
    CUdeviceptr made = 0;
    function<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2")(&made, bytes);
    return reinterpret_cast<std::byte*>(made);
  }
  std::byte* allocate_managed() const {
    CUdeviceptr made = 0;
    function<decltype(cuMemAllocManaged)>("cuMemAllocManaged")(&made, bytes, 1);
    return reinterpret_cast<std::byte*>(made);
  }
  void release(std::byte* address) const {
    function<decltype(cuMemFree_v2)>("cuMemFree_v2")(reinterpret_cast<CUdeviceptr>(address));
  }
  std::byte* data(const std::byte* address) const {
    return static_cast<std::byte*>(function<decltype(fake_cuda_data)>("fake_cuda_data")(address));
  }
  long questions() const { return function<decltype(fake_cuda_questions)>("fake_cuda_questions")(); }
  void fail_after(long copies) const { function<decltype(fake_cuda_fail_after)>("fake_cuda_fail_after")(copies); }

 private:
  void* library_;
};

std::byte* map() {
  return static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// Each test is a process of its own, in which nothing was loaded before.
class DeviceMemory : public ::testing::Test {
 protected:
  void SetUp() override { start_device_memory(); }
};

std::array<std::byte, 64> own_data;

TEST_F(DeviceMemory, IsNoneWithoutADriver) {
  std::byte* mapped = map();
  const std::byte on_stack{};
  const std::vector<std::byte> on_heap(64);
  for (const std::byte* address : {static_cast<const std::byte*>(mapped), &on_stack, on_heap.data(),
                                   static_cast<const std::byte*>(own_data.data())})
    EXPECT_EQ(device_of(address), nullptr);
  EXPECT_FALSE(has_device_driver());
}

TEST_F(DeviceMemory, IsFoundThoughTheDriverIsLoadedLate) {
  std::byte* mapped = map();
  EXPECT_EQ(device_of(mapped), nullptr);
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  std::byte* device = cuda.allocate();
  wait_for_tick();
  ASSERT_NE(device_of(device), nullptr);
  EXPECT_STREQ(device_of(device)->name(), "CUDA");
  EXPECT_NE(device_of(device + bytes - 1), nullptr);
  EXPECT_EQ(device_of(mapped), nullptr);
  EXPECT_EQ(device_of(cuda.allocate_managed()), nullptr);
}

TEST_F(DeviceMemory, IsNotAskedForWhatIsTheProcessorsForGood) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  wait_for_tick();
  EXPECT_NE(device_of(cuda.allocate()), nullptr);
  const long before = cuda.questions();
  const std::byte on_stack{};
  const std::vector<std::byte> on_heap(64);
  EXPECT_EQ(device_of(&on_stack), nullptr);
  EXPECT_EQ(device_of(on_heap.data()), nullptr);
  EXPECT_EQ(device_of(own_data.data()), nullptr);
  EXPECT_EQ(cuda.questions(), before);
  std::thread([] {
    const std::byte on_its_stack{};
    EXPECT_EQ(device_of(&on_its_stack), nullptr);
  }).join();
  EXPECT_EQ(cuda.questions(), before);
}

// Where the heap ends is not asked for in each call, and right all the same after it has moved.
TEST_F(DeviceMemory, KnowsWhereTheHeapEnds) {
#if defined(__GLIBC__)
  ASSERT_NE(dlsym(RTLD_DEFAULT, "__curbrk"), nullptr);
#endif
  if (dlsym(RTLD_DEFAULT, "__curbrk") == nullptr) GTEST_SKIP() << "the C library does not say";
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  ASSERT_TRUE(look_for_device_driver());
  const long asked = cuda.questions();
  const auto* end = static_cast<const std::byte*>(sbrk(bytes));
  const int before = calls_of_sbrk;
  EXPECT_EQ(device_of(end - 1), nullptr);
  EXPECT_EQ(device_of(end + bytes - 1), nullptr);
  EXPECT_EQ(cuda.questions(), asked);
  EXPECT_EQ(calls_of_sbrk, before);
  ASSERT_NE(sbrk(-static_cast<std::intptr_t>(bytes)), reinterpret_cast<void*>(-1));
  EXPECT_EQ(device_of(end + bytes - 1), nullptr);  // the driver says that
  EXPECT_EQ(cuda.questions(), asked + 1);
}

// An address that the device has given back is the processor's when the processor uses it.
TEST_F(DeviceMemory, IsWhatTheDriverSaysNow) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  wait_for_tick();
  std::byte* device = cuda.allocate();
  EXPECT_NE(device_of(device), nullptr);
  cuda.release(device);
  ASSERT_EQ(mmap(device, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), device);
  EXPECT_EQ(device_of(device), nullptr);
}

TEST_F(DeviceMemory, IsCopiedByTheDriverInAnyThread) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  wait_for_tick();
  std::byte* device = cuda.allocate();
  const DeviceDriver* driver = device_of(device);
  ASSERT_NE(driver, nullptr);
  std::vector<std::byte> there(bytes, std::byte{7}), back(bytes);
  EXPECT_TRUE(driver->copy(device, there.data(), bytes).ok());
  EXPECT_EQ(cuda.data(device)[bytes - 1], std::byte{7});
  // A thread of ours has no context.
  std::thread([&] { EXPECT_TRUE(driver->copy(back.data(), device, bytes).ok()); }).join();
  EXPECT_EQ(back, there);
  EXPECT_TRUE(driver->copy(device, there.data(), 0).ok());
}

TEST_F(DeviceMemory, SaysWhyACopyFails) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  wait_for_tick();
  std::byte* device = cuda.allocate();
  const DeviceDriver* driver = device_of(device);
  ASSERT_NE(driver, nullptr);
  cuda.fail_after(1);
  std::vector<std::byte> data(64);
  EXPECT_TRUE(driver->copy(device, data.data(), 64).ok());
  const Status failed = driver->copy(data.data(), device, 64);
  EXPECT_EQ(failed.code(), Code::unavailable);
  EXPECT_NE(failed.message().find("CUDA"), std::string::npos) << failed.message();
  EXPECT_NE(failed.message().find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << failed.message();
}

// As many stores as may be under way have memory of their own on the way; what they are given may be used again at
// once.
TEST_F(DeviceMemory, TakesManyStoresAtOnce) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  ASSERT_TRUE(look_for_device_driver());
  const DeviceDriver* driver = device_of(cuda.allocate());
  ASSERT_NE(driver, nullptr);
  std::vector<std::byte*> places;
  for (std::size_t i = 0; i < tl::DeviceStream::most_stores; ++i) places.push_back(cuda.allocate());
  const tl::DeviceMemory memory = driver->memory_at(places.front());
  const auto stream = driver->make_stream(memory);
  const auto event = driver->make_event(memory);
  ASSERT_TRUE(stream.ok() && event.ok());
  const auto value_of = [](std::size_t store) { return static_cast<std::byte>(store + 1); };
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::min(bytes, std::size_t{4001})}) {
    std::vector<std::byte> given(length);
    for (std::size_t store = 0; store < places.size(); ++store) {
      std::ranges::fill(given, value_of(store));
      ASSERT_TRUE((*stream)->store(places[store], given.data(), length).ok());
      // One byte alone goes as it is.
      if (length > 1) std::ranges::fill(given, std::byte{0xee});
    }
    ASSERT_TRUE((*stream)->record(**event).ok());
    for (Result<bool> passed = (*event)->passed(); !*passed; passed = (*event)->passed()) ASSERT_TRUE(passed.ok());
    for (std::size_t store = length > 1 ? 0 : places.size() - 1; store < places.size(); ++store)
      for (std::size_t at = 0; at < length; ++at)
        ASSERT_EQ(cuda.data(places[store])[at], value_of(store))
            << "store " << store << " of " << length << ", byte " << at;
  }
}

TEST_F(DeviceMemory, IsOfAKind) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  ASSERT_TRUE(look_for_device_driver());
  std::byte* device = cuda.allocate();
  const DeviceDriver* driver = device_of(device);
  ASSERT_NE(driver, nullptr);
  void* pinned = nullptr;
  cuda.function<decltype(cuMemAllocHost_v2)>("cuMemAllocHost_v2")(&pinned, bytes);
  std::byte* mapped = map();
  EXPECT_EQ(driver->memory_at(device).kind, MemoryKind::device);
  EXPECT_EQ(driver->memory_at(pinned).kind, MemoryKind::pinned);
  EXPECT_EQ(driver->memory_at(cuda.allocate_managed()).kind, MemoryKind::managed);
  EXPECT_EQ(driver->memory_at(mapped).kind, MemoryKind::host);
  EXPECT_TRUE(driver->pin(mapped, bytes).ok());
  EXPECT_EQ(driver->memory_at(mapped).kind, MemoryKind::pinned);
  driver->unpin(mapped);
  EXPECT_EQ(driver->memory_at(mapped).kind, MemoryKind::host);
  const tl::DeviceMemory memory = driver->memory_at(device + 100);
  EXPECT_TRUE(memory.contains(device, bytes) && !memory.contains(device + 1, bytes));
}

// What was kept of an allocation is not said of another one at the same address.
TEST_F(DeviceMemory, IsAnotherOnceItsAddressIsUsedAgain) {
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  ASSERT_TRUE(look_for_device_driver());
  const DeviceDriver* driver = device_of(cuda.allocate());
  ASSERT_NE(driver, nullptr);
  CUdeviceptr address = 0;
  cuda.function<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&address, bytes, 0, 0, 0);
  auto* place = reinterpret_cast<std::byte*>(address);
  std::uint64_t last = 0;
  for (const std::size_t length : {bytes, bytes / 2, bytes}) {
    unsigned long long handle = 0;
    cuda.function<decltype(cuMemCreate)>("cuMemCreate")(&handle, bytes, nullptr, 0);
    cuda.function<decltype(cuMemMap)>("cuMemMap")(address, length, 0, handle, 0);
    for (int again = 0; again < 2; ++again) {
      const tl::DeviceMemory memory = driver->memory_at(place);
      EXPECT_EQ(memory.kind, MemoryKind::device);
      EXPECT_EQ(memory.bytes, length);
      EXPECT_TRUE(again == 0 ? memory.allocation != last : memory.allocation == last);
      last = memory.allocation;
    }
    cuda.function<decltype(cuMemUnmap)>("cuMemUnmap")(address, length);
    cuda.function<decltype(cuMemRelease)>("cuMemRelease")(handle);
    EXPECT_EQ(device_of(place), nullptr);
  }
}

TEST(LibraryWatch, FindsTheWordThatFollowsTheCount) {
  std::array<std::atomic<std::uint64_t>, 6> words{};
  const auto set = [&](std::array<std::uint64_t, 6> values) {
    for (std::size_t i = 0; i < values.size(); ++i) words[i] = values[i];
  };
  LibraryWatch watch;
  watch.start(std::span<const std::atomic<std::uint64_t>>(words));
  set({0, 40, 40, 7, 40, 1});
  watch.note(40);
  EXPECT_EQ(watch.word(), nullptr);  // one count is none
  set({0, 43, 42, 7, 43, 1});
  watch.note(43);
  EXPECT_EQ(watch.word(), &words[4]);
  set({0, 44, 42, 7, 43, 1});
  watch.note(44);
  EXPECT_EQ(watch.word(), &words[1]);  // the other one has differed
  set({0, 1, 42, 7, 45, 1});
  watch.note(45);
  EXPECT_EQ(watch.word(), nullptr);  // for good
  set({46, 46, 46, 46, 46, 46});
  watch.note(46);
  EXPECT_EQ(watch.word(), nullptr);
}

// The C library's own, and a driver that is loaded at once after a look.
TEST_F(DeviceMemory, IsSurelyNoneUntilALibraryIsLoaded) {
  ASSERT_NE(dlopen("libz.so.1", RTLD_NOW), nullptr) << dlerror();
  look_for_device_driver();
  if (!surely_no_driver()) GTEST_SKIP() << "the C library keeps no count that can be found";
  std::byte* mapped = map();
  EXPECT_EQ(device_of(mapped), nullptr);
  EXPECT_TRUE(surely_no_driver());
  const FakeCuda cuda;
  ASSERT_TRUE(cuda.loaded()) << dlerror();
  EXPECT_FALSE(surely_no_driver());
  EXPECT_NE(device_of(cuda.allocate()), nullptr);  // without a wait
}

// What the tests rely on.
TEST_F(DeviceMemory, OfTheFakeMayNotBeTouched) {
  const pid_t child = fork();
  if (child == 0) {
    const FakeCuda cuda;
    std::signal(SIGSEGV, SIG_DFL);
    *reinterpret_cast<volatile char*>(cuda.allocate()) = 1;
    _exit(0);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGSEGV);
}

}  // namespace
}  // namespace plait::tl
