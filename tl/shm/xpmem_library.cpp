#include "tl/shm/xpmem_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace plait::tl {
namespace {

constexpr int permit_by_mode = 1;                       // XPMEM_PERMIT_MODE
constexpr std::size_t all_addresses = ~std::size_t{0};  // XPMEM_MAXADDR_SIZE

Status unavailable(const std::string& what, const char* why) {
  return {Code::unavailable, "xpmem: " + what + ": " + why};
}

template <class Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<std::int64_t> make_segment(const XpmemLibrary& library) {
  void* const mode = reinterpret_cast<void*>(std::uintptr_t{0600});
  const std::int64_t segment = library.make(nullptr, all_addresses, permit_by_mode, mode);
  if (segment == -1) return unavailable("exporting this process's memory", std::strerror(errno));
  return segment;
}

}  // namespace

Result<XpmemLibrary> load_xpmem(const char* library, const char* device) {
  if (access(device, R_OK | W_OK) != 0) return unavailable(device, std::strerror(errno));
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return unavailable(library, "cannot be loaded");
  XpmemLibrary found;
  const bool complete = take(opened, "xpmem_make", found.make) && take(opened, "xpmem_remove", found.remove) &&
                        take(opened, "xpmem_get", found.get) && take(opened, "xpmem_release", found.release) &&
                        take(opened, "xpmem_attach", found.attach) && take(opened, "xpmem_detach", found.detach);
  if (!complete) return unavailable(library, "lacks a function");
  return found;
}

const Result<XpmemLibrary>& system_xpmem() {
  static const Result<XpmemLibrary> library = load_xpmem("libxpmem.so.0", "/dev/xpmem");
  return library;
}

const Result<std::int64_t>& own_xpmem_segment(const XpmemLibrary& library) {
  static const Result<std::int64_t> segment = make_segment(library);
  return segment;
}

}  // namespace plait::tl
