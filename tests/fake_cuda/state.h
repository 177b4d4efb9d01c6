// What the parts of the fake driver share. Everything here needs the lock.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fake_cuda/fake_cuda.h"

namespace fake {

enum : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_image = 200,
  invalid_context = 201,
  already_mapped = 208,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  already_registered = 712,
  not_registered = 713,
};
enum : unsigned { type_host = 1, type_device = 2 };

struct Block {
  std::size_t bytes = 0;
  std::byte* data = nullptr;  // where the processor finds it
  unsigned type = type_device;
  bool managed = false;
  std::uint64_t number = 0;  // CUDA's buffer id: never given again
  int file = -1;             // of device memory
  bool registered = false;   // the program's own memory
  bool reserved = false;     // its address is a reservation's
  bool accessible = true;    // to the device
  bool pooled = false;       // of cuMemAllocAsync()
  bool imported = false;     // of a handle that another process has made
  int opened = 0;            // of another process's: times
  CUipcMemHandle handle{};   // likewise
};

// Addresses without memory, and where the processor finds what is mapped there: side by side as the addresses are.
struct Reservation {
  std::size_t bytes = 0;
  std::byte* data = nullptr;
};

struct Settings {
  double bytes_per_ns = 0;       // 0: copies take no time
  double peer_bytes_per_ns = 0;  // of copies between devices; 0: likewise
  std::int64_t latency_ns = 0;
  std::size_t most_pinned = ~std::size_t{0}, most_device = ~std::size_t{0};
  bool kernels = true;
};

enum class Engine : unsigned char { none, from_device, to_device, between_devices };

struct Work {
  std::function<CUresult()> run;
  CUevent follows = nullptr;  // first of all, another stream's work
  std::int64_t end_ns = 0;    // not before
  int refusals = 0;           // times that somebody must ask
};

using StartKernel = CUresult (*)(void** parameters, CUstream stream);

}  // namespace fake

struct CUstream_st {
  std::deque<fake::Work> work;
  std::uint64_t given = 0, done = 0;  // works
  std::uint64_t recorded = 0;         // works before the last event
  std::int64_t end_ns = 0;            // of the last one
};
struct CUevent_st {
  CUstream stream = nullptr;
  std::uint64_t behind = 0;  // works of the stream
  std::int64_t end_ns = 0;
};
struct CUfunc_st {
  enum class Kind { pack, unpack, add, reduce, move, tiles } kind;
  int number = 0;                     // of a reduction: its type, as in the list of its names
  fake::StartKernel start = nullptr;  // tiles
};

namespace fake {

struct Failure {
  long left = -1;
  CUresult result = illegal_address;
};

struct Driver {
  Driver();

  std::recursive_mutex guard;
  std::map<std::uintptr_t, Block> blocks;
  std::map<std::uintptr_t, Reservation> reservations;
  std::set<unsigned long long> imported;  // handles
  bool initialised = false;
  long questions = 0, copies = 0, kernels = 0, mapped = 0;
  std::map<std::string, Failure, std::less<>> failures;
  Settings settings;
  std::size_t pinned = 0, device = 0;
  std::uint64_t last_number = 0;
  std::int64_t engine_free_ns[3] = {0, 0, 0};
  CUstream_st default_stream;
  std::vector<CUstream> streams;  // the others
  CUresult broken = success;      // what all calls return once a copy has failed in its execution
  std::uint32_t dice = 1;
};
Driver& driver();

// Counts a call; what it is to return if it is to fail.
CUresult count(const char* function);
// The device does nothing any more: neither what it was given nor what it will be.
void break_down(CUresult result);
CUresult usable(const char* function);

const std::pair<const std::uintptr_t, Block>* find(std::uintptr_t address);
// Where the processor finds it, whosever it is.
std::byte* reach(CUdeviceptr address);
// A device reaches no memory that it does not know, and takes numbers only where they are aligned.
bool is_reached(CUdeviceptr address, unsigned long long bytes, unsigned long long unit);
// A kernel of fused operators (fused.cpp); nullptr: there is none of that name.
CUfunction fused_function(std::string_view name);
Engine engine_between(CUdeviceptr to, CUdeviceptr from);

CUstream stream_of(CUstream stream);
void give(CUstream stream, Engine engine, std::size_t bytes, std::function<CUresult()> run);
// Runs all of a stream up to there, whatever the time.
CUresult run_until(CUstream stream, std::uint64_t behind);

}  // namespace fake
