// Kernels by name, as functions of the host.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tests/fake_cuda/state.h"

namespace fake {
namespace {

// In the order of their types: Combining, below.
constexpr std::array<std::string_view, 12> types{"i8",  "i16", "i32", "i64",  "u8",  "u16",
                                                 "u32", "u64", "f16", "bf16", "f32", "f64"};

std::array<CUfunc_st, 4> functions{{{.kind = CUfunc_st::Kind::pack},
                                    {.kind = CUfunc_st::Kind::unpack},
                                    {.kind = CUfunc_st::Kind::add},
                                    {.kind = CUfunc_st::Kind::move}}};
std::array<CUfunc_st, types.size()> reductions;

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

// ---- Collectives, as tl/cuda/collectives.cuh has them ----

constexpr unsigned most_parties = 32;
constexpr unsigned vector_bytes = 16;

struct ReduceCall {
  CUdeviceptr sources[most_parties], results[most_parties];
  unsigned source_count, result_count;
  unsigned op, unused;
  unsigned long long numbers, head;
};

struct MoveCall {
  CUdeviceptr to[most_parties], from[most_parties];
  unsigned long long bytes[most_parties], heads[most_parties];
  unsigned count;
};

enum Operator : unsigned { op_max, op_min, op_sum, op_prod, op_land, op_band, op_lor, op_bor, op_lxor, op_bxor };

// Half precision by its definition, bit by bit: another way than Plait's.
struct Half {
  std::uint16_t bits;
  double value() const {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
  }
  static Half rounded(double value) {
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7e00)};
    if (magnitude >= 65520) return {static_cast<std::uint16_t>(sign | 0x7c00)};
    const int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
    const auto units = static_cast<long>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));  // ties to even
    return {static_cast<std::uint16_t>(sign | (units + (static_cast<long>(exponent + 14) << 10)))};
  }
};
// The upper half of a float; what is added or multiplied in double is exact but for the one rounding.
struct Bfloat {
  std::uint16_t bits;
  double value() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static Bfloat rounded(double value) {
    const auto whole = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    if (std::isnan(value)) return {static_cast<std::uint16_t>(whole >> 16 | 0x40)};
    return {static_cast<std::uint16_t>((whole + 0x7fff + (whole >> 16 & 1)) >> 16)};
  }
};

template <class T>
T combined(unsigned op, T left, T right) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>) {
    const double a = left.value(), b = right.value();
    switch (op) {
      case op_sum:
        return T::rounded(a + b);
      case op_prod:
        return T::rounded(a * b);
      case op_max:
        return a > b ? left : right;
      default:
        return a < b ? left : right;
    }
  } else {
    switch (op) {
      case op_sum:
        return static_cast<T>(left + right);
      case op_prod:
        return static_cast<T>(left * right);
      case op_max:
        return left > right ? left : right;
      case op_min:
        return left < right ? left : right;
      case op_land:
        return static_cast<T>(left != 0 && right != 0);
      case op_lor:
        return static_cast<T>(left != 0 || right != 0);
      case op_lxor:
        return static_cast<T>((left != 0) != (right != 0));
      default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
      if (op == op_band) return static_cast<T>(left & right);
      if (op == op_bor) return static_cast<T>(left | right);
      if (op == op_bxor) return static_cast<T>(left ^ right);
    }
    return left;
  }
}

template <class T>
CUresult reduce_numbers(const ReduceCall& call) {
  const unsigned long long bytes = call.numbers * sizeof(T), head = call.head * sizeof(T);
  const auto wrong = [&](CUdeviceptr address) {
    return !is_reached(address, bytes, sizeof(T)) || (call.head < call.numbers && (address + head) % vector_bytes != 0);
  };
  if (std::any_of(call.sources, call.sources + call.source_count, wrong) ||
      std::any_of(call.results, call.results + call.result_count, wrong))
    return illegal_address;
  for (unsigned long long at = 0; at < bytes; at += sizeof(T)) {
    const auto number = [&](CUdeviceptr address) {
      T value;
      std::memcpy(&value, reach(address) + at, sizeof value);
      return value;
    };
    T sum = number(call.sources[0]);
    for (unsigned source = 1; source < call.source_count; ++source)
      sum = combined(call.op, sum, number(call.sources[source]));
    for (unsigned result = 0; result < call.result_count; ++result)
      std::memcpy(reach(call.results[result]) + at, &sum, sizeof sum);
  }
  return count("execution");
}

using Combining = CUresult (*)(const ReduceCall&);
constexpr std::array<Combining, types.size()> combining{
    reduce_numbers<std::int8_t>,   reduce_numbers<std::int16_t>,  reduce_numbers<std::int32_t>,
    reduce_numbers<std::int64_t>,  reduce_numbers<std::uint8_t>,  reduce_numbers<std::uint16_t>,
    reduce_numbers<std::uint32_t>, reduce_numbers<std::uint64_t>, reduce_numbers<Half>,
    reduce_numbers<Bfloat>,        reduce_numbers<float>,         reduce_numbers<double>};

CUresult start_reducing(int type, void** parameters, CUstream stream) {
  give(stream, Engine::none, 0,
       [type, call = parameter<ReduceCall>(parameters, 0)] { return combining[static_cast<std::size_t>(type)](call); });
  return success;
}

CUresult move_all(const MoveCall& call) {
  for (unsigned i = 0; i < call.count; ++i) {
    if (!is_reached(call.to[i], call.bytes[i], 1) || !is_reached(call.from[i], call.bytes[i], 1))
      return illegal_address;
    const bool vectors = call.heads[i] < call.bytes[i];
    if (vectors &&
        ((call.to[i] + call.heads[i]) % vector_bytes != 0 || (call.from[i] + call.heads[i]) % vector_bytes != 0))
      return illegal_address;
    std::memcpy(reach(call.to[i]), reach(call.from[i]), call.bytes[i]);
  }
  return count("execution");
}

CUresult start_moving(void** parameters, CUstream stream) {
  give(stream, Engine::none, 0, [call = parameter<MoveCall>(parameters, 0)] { return move_all(call); });
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
  constexpr std::array<std::string_view, 4> names{"plait_pack", "plait_unpack", "fake_add", "plait_move"};
  constexpr std::string_view reduction = "plait_reduce_";
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) {
      *function = &functions[i];
      return success;
    }
  for (std::size_t i = 0; i < types.size(); ++i)
    if (std::string_view(name).starts_with(reduction) && types[i] == name + reduction.size()) {
      reductions[i] = {.kind = CUfunc_st::Kind::reduce, .number = static_cast<int>(i)};
      *function = &reductions[i];
      return success;
    }
  *function = fused_function(name);
  return *function != nullptr ? success : not_found;
}

CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
  const std::scoped_lock lock(driver().guard);
  if (const CUresult state = usable("cuLaunchKernel"); state != success) return state;
  ++driver().kernels;
  stream = stream_of(stream);
  if (function->kind == CUfunc_st::Kind::add) return start_adding(parameters, stream);
  if (function->kind == CUfunc_st::Kind::reduce) return start_reducing(function->number, parameters, stream);
  if (function->kind == CUfunc_st::Kind::tiles) return function->start(parameters, stream);
  if (function->kind == CUfunc_st::Kind::move) return start_moving(parameters, stream);
  return start_packing(packing(parameters, function->kind == CUfunc_st::Kind::pack), stream);
}

}  // extern "C"
