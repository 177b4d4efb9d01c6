// Stands in for a kernel that forbids, or has no memory left, at chosen calls of a chosen rank. Loaded before Plait's
// library.
//
//   SOAK_REFUSE="copies FIRST COUNT RANK"   process_vm_readv and process_vm_writev fail with EPERM
//   SOAK_REFUSE="memory FIRST COUNT RANK"   operator new, mmap and aligned_alloc fail with ENOMEM
//
// Of the calls that Plait's own code makes the FIRST and those after it, COUNT in all, are refused, to RANK, or to all
// where it is -1. Copies from the first on are refused to Open MPI as well, as where the kernel forbids them; not to
// MPICH, within which UCX would lose the message. That something was refused is said once.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Refusal {
  bool copies = false, memory = false;
  bool of_host = false;  // its copies, too
  long first = 0, count = 0;
};

Refusal refusal_of_environment() {
  Refusal refusal;
  char what[16] = "";
  int rank = -1;
  const char* text = std::getenv("SOAK_REFUSE");
  if (text == nullptr || std::sscanf(text, "%15s %ld %ld %d", what, &refusal.first, &refusal.count, &rank) != 4)
    return refusal;
  const char* mine = std::getenv("OMPI_COMM_WORLD_RANK");
  if (mine == nullptr) mine = std::getenv("PMI_RANK");  // MPICH's launcher
  if (mine == nullptr || (rank >= 0 && rank != std::atoi(mine))) return refusal;
  refusal.of_host = refusal.first == 1 && std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  refusal.copies = std::strcmp(what, "copies") == 0;
  refusal.memory = std::strcmp(what, "memory") == 0;
  return refusal;
}

const Refusal& refusal() {
  static const Refusal found = refusal_of_environment();
  return found;
}

std::atomic<long> calls{0};
std::atomic<bool> said{false};

bool refused(const char* what) {
  const long call = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (call < refusal().first || call - refusal().first >= refusal().count) return false;
  if (!said.exchange(true)) {
    char line[64];
    const int length = std::snprintf(line, sizeof line, "refusals: %s refused, call %ld\n", what, call);
    if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) return true;
  }
  return true;
}

// ---- Whose call it is ----

std::atomic<std::uintptr_t> code_begin{0}, code_end{0};  // of Plait's library; 0: not loaded yet

int look_for_library(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libplait-") == nullptr && std::strstr(info->dlpi_name, "mca_coll_plait") == nullptr)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    code_end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
    code_begin = info->dlpi_addr + part.p_vaddr;
    return 1;
  }
  return 0;
}

// The loader, which calls mmap as well, holds a lock that dl_iterate_phdr wants.
thread_local bool looking = false;

bool is_plait(const void* caller) {
  if (code_begin == 0 && !looking) {
    looking = true;
    dl_iterate_phdr(look_for_library, nullptr);
    looking = false;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return code_begin != 0 && address >= code_begin && address < code_end;
}

bool no_memory(const void* caller) { return refusal().memory && is_plait(caller) && refused("memory"); }

bool no_copy(const void* caller) {
  return refusal().copies && (refusal().of_host || is_plait(caller)) && refused("a copy");
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void* allocated(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (no_memory(caller)) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes != 0 ? bytes : 1);
  return next<void* (*)(std::size_t, std::size_t)>("aligned_alloc")(alignment,
                                                                    (bytes + alignment - 1) / alignment * alignment);
}

void* allocated_or_thrown(std::size_t bytes, std::size_t alignment, const void* caller) {
  void* memory = allocated(bytes, alignment, caller);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

using Copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

}  // namespace

#pragma GCC visibility push(default)

void* operator new(std::size_t bytes) { return allocated_or_thrown(bytes, 1, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocated_or_thrown(bytes, 1, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocated(bytes, 1, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocated_or_thrown(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}

extern "C" {

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (no_memory(__builtin_return_address(0))) return errno = ENOMEM, nullptr;
  return next<void* (*)(std::size_t, std::size_t)>("aligned_alloc")(alignment, bytes);
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (no_memory(__builtin_return_address(0))) return errno = ENOMEM, MAP_FAILED;
  return next<void* (*)(void*, std::size_t, int, int, int, off_t)>("mmap")(at, bytes, protection, flags, descriptor,
                                                                           offset);
}

ssize_t process_vm_readv(pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                         unsigned long there_count, unsigned long flags) {
  if (no_copy(__builtin_return_address(0))) return errno = EPERM, -1;
  return next<Copy>("process_vm_readv")(process, here, here_count, there, there_count, flags);
}

ssize_t process_vm_writev(pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                          unsigned long there_count, unsigned long flags) {
  if (no_copy(__builtin_return_address(0))) return errno = EPERM, -1;
  return next<Copy>("process_vm_writev")(process, here, here_count, there, there_count, flags);
}
}

#pragma GCC visibility pop
