// Products of matrices: the computation of a layer. A library's kernel where there is one, else Plait's own.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fused/layer.h"

namespace plait::fused {

// c = a b, or c + a b: a has `rows` of `depth`, b `depth` of `columns`, row after row. Pitches: elements from one row
// to the next. c overlaps neither of the others.
struct GemmTile {
  const float* a = nullptr;
  std::int64_t a_pitch = 0;
  const float* b = nullptr;
  std::int64_t b_pitch = 0;
  float* c = nullptr;
  std::int64_t c_pitch = 0;
  std::int64_t rows = 0, columns = 0, depth = 0;
  bool adds = false;  // to what c holds
};

// Writes c and nothing else; without depth c is 0, or stays. Products and sums in f32: of `depth` terms, each at most
// one rounding. No address needs alignment. The last bits may differ between processors, and between libraries.
using GemmKernel = void (*)(const GemmTile& tile);

// Plait's own, of this processor: for where there is no library. It packs nothing.
GemmKernel own_gemm_kernel();

// Those of every instruction set that this processor has, for the tests.
struct TargetGemm {
  std::string_view target;
  GemmKernel kernel;
};
std::vector<TargetGemm> gemm_kernels_of_all_targets();

// A library that has cblas_sgemm(), loaded when the process runs.
struct Blas {
  using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int rows, int columns, int depth, float alpha,
                         const float* a, int a_pitch, const float* b, int b_pitch, float beta, float* c, int c_pitch);
  std::string name;
  Sgemm sgemm = nullptr;
  bool takes_threads = false;  // several may be in it at once
  mutable std::mutex guard{};  // of one that does not
};

// The kernel that a rank's workers call.
class Gemm {
 public:
  Gemm() : own_(own_gemm_kernel()) {}
  // The first that can be had of OpenBLAS and BLIS where `library` is "auto"; none where it is "none"; else that in
  // this file. A library that is not made for several threads is not taken for several workers. Throws where memory is
  // short.
  static Gemm find(const std::string& library, int workers);

  void operator()(const GemmTile& tile) const;
  bool is_own() const { return blas_ == nullptr; }  // not a library's
  std::string_view name() const { return blas_ != nullptr ? std::string_view(blas_->name) : "own"; }

 private:
  GemmKernel own_;
  const Blas* blas_ = nullptr;  // there until the process ends
};

}  // namespace plait::fused
