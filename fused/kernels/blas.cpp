// The libraries' products of matrices, found when the process runs: nothing of Plait's needs one to be there.
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <list>

#include "core/immortal.h"
#include "core/log.h"
#include "fused/kernels/gemm.h"

namespace plait::fused {
namespace {

constexpr std::array<const char*, 3> known_libraries = {"libopenblas.so.0", "libblis.so.4", "libblis.so.3"};
constexpr int row_major = 101, not_transposed = 111;  // of the C interface of BLAS

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// OpenBLAS says how it was built; one that makes threads itself is to make none, unless it is the program's own, whose
// threads the program has set.
bool takes_threads(void* library, bool is_programs) {
  if (auto* parallel = symbol<int()>(library, "openblas_get_parallel")) {
    if (parallel() == 0) {
      auto* config = symbol<char*()>(library, "openblas_get_config");
      return config != nullptr && std::strstr(config(), "USE_LOCKING") != nullptr;
    }
    auto* set_threads = symbol<void(int)>(library, "openblas_set_num_threads");
    if (!is_programs && set_threads != nullptr) set_threads(1);
    return true;
  }
  if (auto* set_threads = symbol<void(long)>(library, "bli_thread_set_num_threads"); set_threads && !is_programs)
    set_threads(1);
  return true;
}

// nullptr: there is none.
void load(const char* file, Blas& blas) {
  const bool is_programs = dlopen(file, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  blas.sgemm = symbol<std::remove_pointer_t<Blas::Sgemm>>(library, "cblas_sgemm");
  if (blas.sgemm != nullptr) blas.takes_threads = takes_threads(library, is_programs);
}

// By the name that is asked for; those that are not there as well, so that each is looked for once.
struct Loaded {
  std::mutex guard;
  std::list<Blas> all;
};

const Blas* blas_of(const std::string& file) {
  static Immortal<Loaded> made_once;
  Loaded& loaded = *made_once;
  const std::scoped_lock lock(loaded.guard);
  for (const Blas& one : loaded.all)
    if (one.name == file) return one.sgemm != nullptr ? &one : nullptr;
  Blas& made = loaded.all.emplace_back();
  made.name = file;
  load(file.c_str(), made);
  return made.sgemm != nullptr ? &made : nullptr;
}

bool serves(const Blas* blas, int workers) { return blas != nullptr && (workers == 1 || blas->takes_threads); }

}  // namespace

Gemm Gemm::find(const std::string& library, int workers) {
  Gemm found;
  if (library == "none") return found;
  std::vector<std::string> files = {library};
  if (library == "auto") files.assign(known_libraries.begin(), known_libraries.end());
  for (const std::string& file : files)
    if (const Blas* blas = blas_of(file); serves(blas, workers)) {
      found.blas_ = blas;
      return found;
    }
  debug("products of matrices are Plait's own: no library serves " + std::to_string(workers) + " workers");
  return found;
}

void Gemm::operator()(const GemmTile& tile) const {
  if (tile.rows == 0 || tile.columns == 0) return;
  if (blas_ == nullptr || tile.depth == 0) return own_(tile);
  std::unique_lock lock(blas_->guard, std::defer_lock);
  if (!blas_->takes_threads) lock.lock();
  blas_->sgemm(row_major, not_transposed, not_transposed, static_cast<int>(tile.rows), static_cast<int>(tile.columns),
               static_cast<int>(tile.depth), 1, tile.a, static_cast<int>(tile.a_pitch), tile.b,
               static_cast<int>(tile.b_pitch), tile.adds ? 1.0f : 0.0f, tile.c, static_cast<int>(tile.c_pitch));
}

}  // namespace plait::fused
