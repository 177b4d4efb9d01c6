#include "tl/device/device_memory.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/log.h"
#include "tl/cuda/cuda_driver.h"
#include "tl/device/library_watch.h"
#include "tl/hip/hip_driver.h"

namespace plait::tl {

constinit detail::AddressRange detail::program_data;
constinit std::uintptr_t detail::heap_begin = 0;
constinit const std::uintptr_t* detail::heap_end = nullptr;
thread_local constinit detail::AddressRange detail::own_stack;

namespace {
constinit std::atomic<std::uint64_t> not_known{0};
}
constinit std::atomic<std::uint64_t> detail::loaded_without_driver{~std::uint64_t{0}};
constinit std::atomic<const std::atomic<std::uint64_t>*> detail::loaded{&not_known};

namespace {

struct Kind {
  std::string_view library;  // begin of its name
  std::unique_ptr<DeviceDriver> (*open)(void* library);
};
constexpr std::array<Kind, 2> kinds{{{"libcuda.so", open_cuda_driver}, {"libamdhip64.so", open_hip_driver}}};

constinit std::array<std::atomic<const DeviceDriver*>, kinds.size()> drivers{};
constinit std::atomic<std::int64_t> last_look{-1};       // tick
constinit std::atomic<std::uint64_t> libraries_seen{0};  // loaded since the process began
constinit LibraryWatch watch;

// Milliseconds apart; a read costs as little as a look at memory that the system shares.
std::int64_t tick() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::string_view file_name(const char* path) {
  const std::string_view whole = path != nullptr ? path : "";
  return whole.substr(whole.rfind('/') + 1);
}

struct Search {
  std::string_view name;
  std::array<char, 4096> path{};
};

int find_library(dl_phdr_info* info, std::size_t, void* wanted) {
  auto& search = *static_cast<Search*>(wanted);
  if (!file_name(info->dlpi_name).starts_with(search.name)) return 0;
  std::snprintf(search.path.data(), search.path.size(), "%s", info->dlpi_name);
  return 1;
}

// The reference keeps the library, as its functions are called from now on.
const DeviceDriver* look_for(const Kind& kind) {
  Search search{.name = kind.library};
  if (dl_iterate_phdr(find_library, &search) == 0) return nullptr;
  void* library = dlopen(search.path.data(), RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return nullptr;
  std::unique_ptr<DeviceDriver> driver = kind.open(library);
  if (driver == nullptr) {
    dlclose(library);
    warn(std::string(search.path.data()) +
         " lacks functions that Plait asks for: memory of its devices would be taken for the host's; set "
         "PLAIT_DISABLE=1");
  } else {
    debug(std::string("device memory: ") + driver->name() + " is loaded");
  }
  return driver.release();
}

bool any_driver() {
  return std::ranges::any_of(drivers,
                             [](const auto& driver) { return driver.load(std::memory_order_relaxed) != nullptr; });
}

// From now on a look at a word says whether there may be a driver, where that word is known.
void watch_libraries(std::uint64_t libraries) {
  const bool usable = watch.word() != nullptr && !any_driver();
  detail::loaded_without_driver.store(usable ? libraries : ~std::uint64_t{0}, std::memory_order_relaxed);
  detail::loaded.store(usable ? watch.word() : &not_known, std::memory_order_relaxed);
}

// Another thread may load one meanwhile: it is counted only behind the look that it came after.
void look_for_drivers() {
  static constinit std::mutex looking;
  const std::scoped_lock lock(looking);
  const std::uint64_t libraries = watch.look();
  if (libraries != libraries_seen.load(std::memory_order_relaxed)) {
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if (drivers[i].load(std::memory_order_relaxed) == nullptr)
        drivers[i].store(look_for(kinds[i]), std::memory_order_release);
    libraries_seen.store(libraries, std::memory_order_relaxed);
  }
  watch_libraries(libraries);
}

// Whether a driver may have been loaded since the last look.
bool is_due() {
  if (detail::loaded.load(std::memory_order_relaxed) != &not_known) return true;  // and the number has changed
  const std::int64_t now = tick();
  return last_look.exchange(now, std::memory_order_relaxed) != now;
}

void learn_own_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* begin = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0)
    detail::own_stack = {reinterpret_cast<std::uintptr_t>(begin), bytes};
  pthread_attr_destroy(&attributes);
}

// The first is the program itself.
int note_program_data(dl_phdr_info* info, std::size_t, void*) {
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    begin = std::min<std::uintptr_t>(begin, info->dlpi_addr + part.p_vaddr);
    end = std::max<std::uintptr_t>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  if (end > begin) detail::program_data = {begin, end - begin};
  return 1;
}

// Field 47 of /proc/self/stat; the program's name, which may have blanks in it, is the second and in brackets.
std::uintptr_t begin_of_heap() {
  constexpr int heap_field = 47, first_field = 3;
  std::array<char, 2048> text{};
  std::FILE* file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return 0;
  const std::size_t length = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  text[length] = '\0';
  const char* next = std::strrchr(text.data(), ')');
  for (int field = first_field; next != nullptr && field <= heap_field; ++field) next = std::strchr(next + 1, ' ');
  unsigned long begin = 0;
  return next != nullptr && std::sscanf(next, "%lu", &begin) == 1 ? begin : 0;
}

// The word is believed where it says what sbrk() says.
const std::uintptr_t* end_of_heap() {
  const auto* word = static_cast<const std::uintptr_t*>(dlsym(RTLD_DEFAULT, "__curbrk"));
  return word != nullptr && *word == reinterpret_cast<std::uintptr_t>(sbrk(0)) ? word : nullptr;
}

}  // namespace

// What does not change is found once: other threads' calls may read it by the second time.
void start_device_memory() {
  static const bool found = [] {
    watch.start();
    dl_iterate_phdr(note_program_data, nullptr);
    detail::heap_begin = begin_of_heap();
    detail::heap_end = end_of_heap();
    return true;
  }();
  static_cast<void>(found);
  look_for_drivers();
}

const DeviceDriver* detail::device_of_other(const void* address) {
  if (own_stack.bytes == 0) {
    learn_own_stack();
    if (own_stack.contains(address)) return nullptr;
  }
  if (is_due()) look_for_drivers();
  for (const auto& driver : drivers)
    if (const DeviceDriver* found = driver.load(std::memory_order_acquire); found != nullptr && found->owns(address))
      return found;
  return nullptr;
}

bool has_device_driver() { return any_driver(); }

bool look_for_device_driver() {
  look_for_drivers();
  return any_driver();
}

}  // namespace plait::tl
