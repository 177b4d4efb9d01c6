#include "runtime/job/descriptor_share.h"

#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <system_error>

namespace plait::runtime {
namespace {

constinit std::atomic<std::size_t> descriptors_taken{0};

}  // namespace

std::size_t free_descriptors() {
  rlimit limit{};
  std::error_code unreadable;
  std::size_t open = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable))
    ++open;
  if (unreadable || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= open) return 0;
  return static_cast<std::size_t>(limit.rlim_cur - open);
}

bool DescriptorShare::take(std::size_t count) {
  count_ = count;
  // Of those that are not open yet. What was taken and is open by now counts twice.
  if (descriptors_taken.fetch_add(count) + count <= free_descriptors() / 2) return true;
  give_back();
  return false;
}

void DescriptorShare::give_back() { descriptors_taken -= std::exchange(count_, 0); }

}  // namespace plait::runtime
