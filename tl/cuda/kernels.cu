// Gathers the runs of elements in a device's memory into packed bytes in pinned memory of the processor's, and the
// other way round. A thread takes one word after the other; neighbours take neighbouring words of the packed bytes, so
// that what crosses the bus is dense. tl/cuda/cuda_kernels.h starts them.

#include "collectives.cuh"
#include "fused.cuh"
#include "gather.cuh"

struct Run {
  long long place;  // from the begin of its element
  unsigned long long packed, bytes;
};

constexpr unsigned kept_runs = 1024;  // of a type, read once a block

// The run that holds an element's packed byte: the last that begins no later.
__device__ unsigned run_of(const Run* runs, unsigned count, unsigned long long packed) {
  unsigned low = 0, high = count;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    if (runs[middle].packed <= packed)
      low = middle;
    else
      high = middle;
  }
  return low;
}

struct Call {
  unsigned char* packed;
  unsigned char* elements;
  const Run* runs;
  unsigned run_count;
  unsigned long long packed_bytes;
  long long extent;
  unsigned long long begin, end;
};

template <class Word, bool packs>
__device__ void move(const Call& call, const Run* runs) {
  const unsigned long long words = (call.end - call.begin) / sizeof(Word);
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long word = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; word < words;
       word += stride) {
    const unsigned long long at = call.begin + word * sizeof(Word);
    const unsigned long long element = at / call.packed_bytes, within = at % call.packed_bytes;
    const Run& run = runs[run_of(runs, call.run_count, within)];
    unsigned char* place = call.elements + static_cast<long long>(element) * call.extent + run.place +
                           static_cast<long long>(within - run.packed);
    Word* packed = reinterpret_cast<Word*>(call.packed) + word;
    if (packs)
      *packed = *reinterpret_cast<const Word*>(place);
    else
      *reinterpret_cast<Word*>(place) = *packed;
  }
}

template <bool packs>
__device__ void move_words(const Call& call, unsigned word_bytes) {
  __shared__ Run kept[kept_runs];
  const Run* runs = call.runs;
  if (call.run_count <= kept_runs) {
    for (unsigned run = threadIdx.x; run < call.run_count; run += blockDim.x) kept[run] = call.runs[run];
    __syncthreads();
    runs = kept;
  }
  switch (word_bytes) {
    case 16:
      return move<uint4, packs>(call, runs);
    case 8:
      return move<unsigned long long, packs>(call, runs);
    case 4:
      return move<unsigned, packs>(call, runs);
    case 2:
      return move<unsigned short, packs>(call, runs);
    default:
      return move<unsigned char, packs>(call, runs);
  }
}

extern "C" __global__ void plait_pack(unsigned char* packed, unsigned char* elements, const Run* runs,
                                      unsigned run_count, unsigned word_bytes, unsigned long long packed_bytes,
                                      long long extent, unsigned long long begin, unsigned long long end) {
  move_words<true>({packed, elements, runs, run_count, packed_bytes, extent, begin, end}, word_bytes);
}

extern "C" __global__ void plait_unpack(unsigned char* packed, unsigned char* elements, const Run* runs,
                                        unsigned run_count, unsigned word_bytes, unsigned long long packed_bytes,
                                        long long extent, unsigned long long begin, unsigned long long end) {
  move_words<false>({packed, elements, runs, run_count, packed_bytes, extent, begin, end}, word_bytes);
}
