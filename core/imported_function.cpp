#include "core/imported_function.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace plait {
namespace {

struct Table {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

// A loaded library: where it lies, and its tables as the dynamic linker sees them.
struct Library {
  std::uintptr_t base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  Table functions, data;  // relocations
  Table read_only;        // what the linker has locked after it was done

  // The linker has turned most offsets into addresses.
  std::uintptr_t address(ElfW(Addr) value) const { return value < base ? base + value : value; }
};

void read_dynamic(Library& library, const ElfW(Dyn) * entry) {
  for (; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t address = library.address(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB:
        library.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        library.names = reinterpret_cast<const char*>(address);
        break;
      case DT_JMPREL:
        library.functions.begin = address;
        break;
      case DT_PLTRELSZ:
        library.functions.bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        library.data.begin = address;
        break;
      case DT_RELASZ:
        library.data.bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
}

struct Search {
  std::uintptr_t inside;
  Library found;
};

int look_at(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const std::span segments(info->dlpi_phdr, info->dlpi_phnum);
  const auto holds = [&](const ElfW(Phdr) & segment) {
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && search.inside >= begin && search.inside - begin < segment.p_memsz;
  };
  bool here = false;
  for (const ElfW(Phdr) & segment : segments) here |= holds(segment);
  if (!here) return 0;
  search.found.base = info->dlpi_addr;
  for (const ElfW(Phdr) & segment : segments) {
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) read_dynamic(search.found, reinterpret_cast<const ElfW(Dyn)*>(begin));
    if (segment.p_type == PT_GNU_RELRO) search.found.read_only = {begin, segment.p_memsz};
  }
  return 1;
}

bool put(const Library& library, std::uintptr_t slot, const void* function) {
  const bool locked = slot >= library.read_only.begin && slot - library.read_only.begin < library.read_only.bytes;
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = reinterpret_cast<void*>(slot / page_bytes * page_bytes);
  if (locked && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(reinterpret_cast<const void**>(slot), function, __ATOMIC_RELEASE);
  if (locked) mprotect(page, page_bytes, PROT_READ);
  return true;
}

bool replace_in(const Library& library, const Table& table, const char* name, const void* function) {
#if defined(__x86_64__)
  constexpr unsigned long function_slot = R_X86_64_JUMP_SLOT, data_slot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
  constexpr unsigned long function_slot = R_AARCH64_JUMP_SLOT, data_slot = R_AARCH64_GLOB_DAT;
#else
#error "relocations are known for x86_64 and aarch64"
#endif
  bool replaced = false;
  const std::span entries(reinterpret_cast<const ElfW(Rela)*>(table.begin), table.bytes / sizeof(ElfW(Rela)));
  for (const ElfW(Rela) & entry : entries) {
    const unsigned long kind = ELF64_R_TYPE(entry.r_info);
    if (kind != function_slot && kind != data_slot) continue;
    const ElfW(Sym)& symbol = library.symbols[ELF64_R_SYM(entry.r_info)];
    if (std::strcmp(library.names + symbol.st_name, name) != 0) continue;
    replaced |= put(library, library.base + entry.r_offset, function);
  }
  return replaced;
}

}  // namespace

bool replace_imported_function(const void* inside, const char* name, const void* function) {
  Search search{.inside = reinterpret_cast<std::uintptr_t>(inside), .found = {}};
  if (dl_iterate_phdr(look_at, &search) == 0) return false;
  const Library& library = search.found;
  if (library.symbols == nullptr || library.names == nullptr) return false;
  const bool called = replace_in(library, library.functions, name, function);
  const bool taken = replace_in(library, library.data, name, function);
  return called || taken;
}

}  // namespace plait
