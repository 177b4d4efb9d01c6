// Combines what several ranks have in device memory, and moves it, straight between their buffers: those of other
// processes and devices are mapped. Each thread takes vectors of 16 bytes, some of which are under way at once, where
// all addresses allow it; what lies before and behind them goes number by number. No thread waits for anything: the
// ranks begin once all data are there, and are through once all have done theirs. tl/cuda/cuda_kernels.h starts them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr unsigned most_parties = 32;
constexpr unsigned vectors_at_once = 4;

struct ReduceCall {
  unsigned char* sources[most_parties];
  unsigned char* results[most_parties];
  unsigned source_count, result_count;
  unsigned op, unused;
  unsigned long long numbers, head;
};

struct MoveCall {
  unsigned char* to[most_parties];
  unsigned char* from[most_parties];
  unsigned long long bytes[most_parties], heads[most_parties];
  unsigned count;
};

// As core/element.h numbers them.
enum class Op : unsigned { max, min, sum, prod, land, band, lor, bor, lxor, bxor };

// ---- Numbers ----

// Reals of 16 bits are combined as floats and rounded each time, as on the processor.
struct Half {
  unsigned short bits;
  __device__ float value() const { return __half2float(__ushort_as_half(bits)); }
  __device__ static Half rounded(float value) { return {__half_as_ushort(__float2half_rn(value))}; }
};
struct Bfloat {
  unsigned short bits;
  __device__ float value() const { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
  __device__ static Bfloat rounded(float value) { return {__bfloat16_as_ushort(__float2bfloat16_rn(value))}; }
};

template <class T>
struct Traits {
  static constexpr bool short_real = false, real = false;
};
template <>
struct Traits<float> {
  static constexpr bool short_real = false, real = true;
};
template <>
struct Traits<double> {
  static constexpr bool short_real = false, real = true;
};
template <>
struct Traits<Half> {
  static constexpr bool short_real = true, real = true;
};
template <>
struct Traits<Bfloat> {
  static constexpr bool short_real = true, real = true;
};

// Of a comparison with a NaN the right operand remains, as on the processor.
template <Op op, class T>
__device__ T combined(T left, T right) {
  if constexpr (Traits<T>::short_real) {
    const float a = left.value(), b = right.value();
    if constexpr (op == Op::sum) return T::rounded(a + b);
    if constexpr (op == Op::prod) return T::rounded(a * b);
    if constexpr (op == Op::max) return a > b ? left : right;
    if constexpr (op == Op::min) return a < b ? left : right;
    return left;
  } else {
    if constexpr (op == Op::sum) return static_cast<T>(left + right);
    if constexpr (op == Op::prod) return static_cast<T>(left * right);
    if constexpr (op == Op::max) return left > right ? left : right;
    if constexpr (op == Op::min) return left < right ? left : right;
    if constexpr (!Traits<T>::real) {
      if constexpr (op == Op::land) return static_cast<T>(left != 0 && right != 0);
      if constexpr (op == Op::lor) return static_cast<T>(left != 0 || right != 0);
      if constexpr (op == Op::lxor) return static_cast<T>((left != 0) != (right != 0));
      if constexpr (op == Op::band) return static_cast<T>(left & right);
      if constexpr (op == Op::bor) return static_cast<T>(left | right);
      if constexpr (op == Op::bxor) return static_cast<T>(left ^ right);
    }
    return left;
  }
}

template <class T>
union Vector {
  uint4 whole;
  T numbers[16 / sizeof(T)];
};

// ---- Reductions ----

template <Op op, class T>
__device__ void reduce_number(const ReduceCall& call, unsigned long long at) {
  T sum = reinterpret_cast<const T*>(call.sources[0])[at];
  for (unsigned source = 1; source < call.source_count; ++source)
    sum = combined<op, T>(sum, reinterpret_cast<const T*>(call.sources[source])[at]);
  for (unsigned result = 0; result < call.result_count; ++result) reinterpret_cast<T*>(call.results[result])[at] = sum;
}

// Vectors [first, first + stride, ...), `vectors_at_once` of them, as far as there are so many.
template <Op op, class T>
__device__ void reduce_vectors(const ReduceCall& call, unsigned long long first, unsigned long long stride,
                               unsigned long long vectors) {
  const unsigned long long before = call.head * sizeof(T);
  Vector<T> sums[vectors_at_once], terms[vectors_at_once];
  const auto load = [&](unsigned source, Vector<T>* into) {
    const uint4* from = reinterpret_cast<const uint4*>(call.sources[source] + before);
#pragma unroll
    for (unsigned i = 0; i < vectors_at_once; ++i)
      if (first + i * stride < vectors) into[i].whole = from[first + i * stride];
  };
  load(0, sums);
  for (unsigned source = 1; source < call.source_count; ++source) {
    load(source, terms);
#pragma unroll
    for (unsigned i = 0; i < vectors_at_once; ++i)
#pragma unroll
      for (unsigned k = 0; k < 16 / sizeof(T); ++k)
        sums[i].numbers[k] = combined<op, T>(sums[i].numbers[k], terms[i].numbers[k]);
  }
  for (unsigned result = 0; result < call.result_count; ++result) {
    uint4* to = reinterpret_cast<uint4*>(call.results[result] + before);
#pragma unroll
    for (unsigned i = 0; i < vectors_at_once; ++i)
      if (first + i * stride < vectors) to[first + i * stride] = sums[i].whole;
  }
}

template <Op op, class T>
__device__ void reduce_all(const ReduceCall& call) {
  constexpr unsigned a_vector = 16 / sizeof(T);
  const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  const unsigned long long vectors = (call.numbers - call.head) / a_vector;
  for (unsigned long long first = thread; first < vectors; first += vectors_at_once * stride)
    reduce_vectors<op, T>(call, first, stride, vectors);
  for (unsigned long long at = thread; at < call.head; at += stride) reduce_number<op, T>(call, at);
  for (unsigned long long at = call.head + vectors * a_vector + thread; at < call.numbers; at += stride)
    reduce_number<op, T>(call, at);
}

template <class T>
__device__ void reduce_by(const ReduceCall& call) {
  switch (static_cast<Op>(call.op)) {
    case Op::sum:
      return reduce_all<Op::sum, T>(call);
    case Op::prod:
      return reduce_all<Op::prod, T>(call);
    case Op::max:
      return reduce_all<Op::max, T>(call);
    case Op::min:
      return reduce_all<Op::min, T>(call);
    default:
      break;
  }
  if constexpr (!Traits<T>::real) {
    switch (static_cast<Op>(call.op)) {
      case Op::land:
        return reduce_all<Op::land, T>(call);
      case Op::band:
        return reduce_all<Op::band, T>(call);
      case Op::lor:
        return reduce_all<Op::lor, T>(call);
      case Op::bor:
        return reduce_all<Op::bor, T>(call);
      case Op::lxor:
        return reduce_all<Op::lxor, T>(call);
      case Op::bxor:
        return reduce_all<Op::bxor, T>(call);
      default:
        return;
    }
  }
}

#define PLAIT_REDUCE(name, T) \
  extern "C" __global__ void __launch_bounds__(512) plait_reduce_##name(const ReduceCall call) { reduce_by<T>(call); }
PLAIT_REDUCE(i8, signed char)
PLAIT_REDUCE(i16, short)
PLAIT_REDUCE(i32, int)
PLAIT_REDUCE(i64, long long)
PLAIT_REDUCE(u8, unsigned char)
PLAIT_REDUCE(u16, unsigned short)
PLAIT_REDUCE(u32, unsigned)
PLAIT_REDUCE(u64, unsigned long long)
PLAIT_REDUCE(f16, Half)
PLAIT_REDUCE(bf16, Bfloat)
PLAIT_REDUCE(f32, float)
PLAIT_REDUCE(f64, double)
#undef PLAIT_REDUCE

// ---- Moves ----

// A row of the grid each.
extern "C" __global__ void __launch_bounds__(512) plait_move(const MoveCall call) {
  const unsigned char* from = call.from[blockIdx.y];
  unsigned char* to = call.to[blockIdx.y];
  const unsigned long long bytes = call.bytes[blockIdx.y], head = call.heads[blockIdx.y];
  const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  const unsigned long long vectors = (bytes - head) / 16;
  const uint4* source = reinterpret_cast<const uint4*>(from + head);
  uint4* target = reinterpret_cast<uint4*>(to + head);
  for (unsigned long long first = thread; first < vectors; first += vectors_at_once * stride) {
    uint4 kept[vectors_at_once];
#pragma unroll
    for (unsigned i = 0; i < vectors_at_once; ++i)
      if (first + i * stride < vectors) kept[i] = source[first + i * stride];
#pragma unroll
    for (unsigned i = 0; i < vectors_at_once; ++i)
      if (first + i * stride < vectors) target[first + i * stride] = kept[i];
  }
  for (unsigned long long at = thread; at < head; at += stride) to[at] = from[at];
  for (unsigned long long at = head + vectors * 16 + thread; at < bytes; at += stride) to[at] = from[at];
}
