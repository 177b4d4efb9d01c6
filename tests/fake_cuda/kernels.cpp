// Kernels by name, as functions of the host.
#include <array>
#include <cstring>
#include <string_view>

#include "tests/fake_cuda/state.h"

namespace fake {
namespace {

std::array<CUfunc_st, 3> functions{{{CUfunc_st::Kind::pack}, {CUfunc_st::Kind::unpack}, {CUfunc_st::Kind::add}}};

template <class T>
T parameter(void** parameters, int index) {
  T value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

struct Run {
  long long place;
  unsigned long long packed, bytes;
};

// As tl/cuda/kernels.cu has them.
struct Packing {
  CUdeviceptr packed, elements, runs;
  unsigned run_count, word_bytes;
  unsigned long long packed_bytes;
  long long extent;
  unsigned long long begin, end;
  bool packs;

  CUresult run() const {
    const auto* table = reinterpret_cast<const Run*>(reach(runs));
    for (unsigned long long at = begin; at < end; at += word_bytes) {
      const unsigned long long element = at / packed_bytes, within = at % packed_bytes;
      unsigned run = run_count - 1;
      while (table[run].packed > within) --run;
      const CUdeviceptr place = elements +
                                static_cast<CUdeviceptr>(static_cast<long long>(element) * extent + table[run].place) +
                                (within - table[run].packed);
      if (place % word_bytes != 0 || (packed + (at - begin)) % word_bytes != 0) return illegal_address;
      if (find(place) == nullptr) return illegal_address;  // a device reaches no memory that it does not know
      std::byte* there = reach(place);
      std::byte* here = reach(packed + (at - begin));
      if (packs)
        std::memcpy(here, there, word_bytes);
      else
        std::memcpy(there, here, word_bytes);
    }
    return count("execution");
  }
};

Packing packing(void** parameters, bool packs) {
  return {.packed = parameter<CUdeviceptr>(parameters, 0),
          .elements = parameter<CUdeviceptr>(parameters, 1),
          .runs = parameter<CUdeviceptr>(parameters, 2),
          .run_count = parameter<unsigned>(parameters, 3),
          .word_bytes = parameter<unsigned>(parameters, 4),
          .packed_bytes = parameter<unsigned long long>(parameters, 5),
          .extent = parameter<long long>(parameters, 6),
          .begin = parameter<unsigned long long>(parameters, 7),
          .end = parameter<unsigned long long>(parameters, 8),
          .packs = packs};
}

CUresult start_packing(const Packing& packing, CUstream stream) {
  if (find(packing.packed) == nullptr || find(packing.runs) == nullptr) return illegal_address;
  give(stream, packing.packs ? Engine::from_device : Engine::to_device, packing.end - packing.begin,
       [packing] { return packing.run(); });
  return success;
}

CUresult start_adding(void** parameters, CUstream stream) {
  const auto numbers = parameter<CUdeviceptr>(parameters, 0);
  const auto length = parameter<unsigned>(parameters, 1);
  const auto term = parameter<int>(parameters, 2);
  give(stream, Engine::none, 0, [=] {
    auto* data = reinterpret_cast<int*>(reach(numbers));
    for (unsigned i = 0; i < length; ++i) data[i] += term;
    return success;
  });
  return success;
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void*) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuModuleLoadData"); state != success) return state;
  *module = reinterpret_cast<CUmodule>(std::uintptr_t{0x2000});
  return driver().settings.kernels ? success : invalid_image;
}

CUresult cuModuleUnload(CUmodule) { return success; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  constexpr std::array<std::string_view, 3> names{"plait_pack", "plait_unpack", "fake_add"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) {
      *function = &functions[i];
      return success;
    }
  return not_found;
}

CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuLaunchKernel"); state != success) return state;
  ++driver().kernels;
  stream = stream_of(stream);
  if (function->kind == CUfunc_st::Kind::add) return start_adding(parameters, stream);
  return start_packing(packing(parameters, function->kind == CUfunc_st::Kind::pack), stream);
}

}  // extern "C"
