#include "plugin/preload/mpi_in_process.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace plait::plugin::preload {
namespace {

constexpr std::array known_kinds = {
    MpiKind{"Open MPI", "libmpi.so.40", "ompi_mpi_comm_world", "libplait-openmpi.so"},
    MpiKind{"MPICH", "libmpich.so.12", "MPIR_Dup_fn", "libplait-mpich.so"},
};

constexpr const char* probe = "PMPI_Init";  // every MPI library defines it, and no tool

const MpiKind* kind_of(void* library) {
  for (const MpiKind& kind : known_kinds) {
    if (dlsym(library, kind.mark) != nullptr) return &kind;
  }
  return nullptr;
}

// Nothing where the file is not loaded, or does not itself define MPI.
MpiInProcess look_into(const char* file) {
  void* library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return {};
  void* function = dlsym(library, probe);
  Dl_info found{};
  if (function != nullptr && dladdr(function, &found) != 0 && std::strcmp(found.dli_fname, file) == 0)
    return {.library = library, .kind = kind_of(library)};
  dlclose(library);
  return {};
}

MpiInProcess seen_by_all() {
  void* function = dlsym(RTLD_NEXT, probe);
  Dl_info found{};
  if (function == nullptr || dladdr(function, &found) == 0) return {};
  return look_into(found.dli_fname);
}

// The files of loaded libraries that may be MPI's by their names, in the order of loading. They are looked into later:
// within dl_iterate_phdr() nothing may be opened.
struct Candidates {
  std::array<char*, 16> files{};
  std::size_t count = 0;
};

int add_candidate(dl_phdr_info* object, std::size_t, void* to) {
  auto& candidates = *static_cast<Candidates*>(to);
  const char* slash = std::strrchr(object->dlpi_name, '/');
  const char* name = slash == nullptr ? object->dlpi_name : slash + 1;
  if (std::strncmp(name, "libmpi", std::strlen("libmpi")) != 0) return 0;
  if (candidates.count < candidates.files.size()) candidates.files[candidates.count++] = strdup(object->dlpi_name);
  return 0;
}

MpiInProcess seen_by_some() {
  Candidates candidates;
  dl_iterate_phdr(add_candidate, &candidates);
  MpiInProcess found;
  for (std::size_t index = 0; index < candidates.count; ++index) {
    char* file = candidates.files[index];
    if (file != nullptr && found.kind == nullptr) {
      const MpiInProcess next = look_into(file);
      if (next.library != nullptr) found = next;
    }
    std::free(file);
  }
  return found;
}

}  // namespace

MpiInProcess find_mpi() {
  const MpiInProcess found = seen_by_all();
  return found.library != nullptr ? found : seen_by_some();
}

void describe_known_kinds(char* text, std::size_t bytes) {
  std::size_t length = 0;
  for (const MpiKind& kind : known_kinds) {
    if (length >= bytes) return;
    const int added =
        std::snprintf(text + length, bytes - length, "%s%s (%s)", length == 0 ? "" : " or ", kind.name, kind.library);
    length += static_cast<std::size_t>(added);
  }
}

}  // namespace plait::plugin::preload
