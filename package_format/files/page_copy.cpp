#include "package_format/files/page_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sconce/check.h"

namespace sconce {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

PageCopy::PageCopy(std::span<const std::byte> source) : source_(source), taken_((source.size() + kPage - 1) / kPage) {
  if (source.empty()) return;
  void* data =
      ::mmap(nullptr, source.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SCONCE_CHECK(data != MAP_FAILED, kOutOfMemory, "cannot reserve ", source.size(),
               " bytes of addresses: ", std::strerror(errno));
  data_ = static_cast<std::byte*>(data);
}

PageCopy::~PageCopy() {
  if (data_) ::munmap(data_, source_.size());
}

void PageCopy::take(ByteRange range) noexcept {
  if (range.size == 0) return;
  for (uint64_t page = range.offset / kPage; page <= (range.end() - 1) / kPage; ++page) {
    if (taken_[page]) continue;
    const uint64_t offset = page * kPage;
    std::memcpy(data_ + offset, source_.data() + offset, std::min(kPage, source_.size() - offset));
    taken_[page] = true;
  }
}

}  // namespace sconce
