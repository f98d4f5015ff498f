#include "src/device/dummy_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sconce/check.h"

namespace sconce {

static thread_local bool dummy = false;

DummyRun::DummyRun() noexcept { dummy = true; }
DummyRun::~DummyRun() { dummy = false; }

void map_cached_pages(const Storage& table) noexcept {
  constexpr size_t kMost = size_t{1} << 30, kPages = 512;
  if (!dummy || !table.immutable() || table.device().type != DeviceType::kCpu || table.bytes() > kMost) return;
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(table.data());
  const uintptr_t end = (first + table.bytes()) / page * page;
  for (uintptr_t at = (first + page - 1) / page * page; at < end; at += kPages * page) {
    const size_t bytes = std::min<size_t>(end - at, kPages * page);
    std::array<unsigned char, kPages> cached;
    if (::mincore(reinterpret_cast<void*>(at), bytes, cached.data()) != 0) return;
    const auto known = cached.begin() + static_cast<ptrdiff_t>(bytes / page);
    if (std::all_of(cached.begin(), known, [](unsigned char flags) { return (flags & 1) != 0; }) &&
        ::madvise(reinterpret_cast<void*>(at), bytes, MADV_POPULATE_READ) != 0)
      return;  // an older kernel
  }
}

void refuse_in_dummy_run(const char* what) { SCONCE_CHECK(!dummy, kFailedPrecondition, what); }

}  // namespace sconce
