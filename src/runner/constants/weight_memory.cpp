#include "src/runner/constants/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "package_format/files/host_memory.h"
#include "sconce/check.h"
#include "sconce/mutex.h"

namespace sconce::runner {
namespace {

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;
constexpr size_t kLargePiece = 64 * 1024;

size_t up(size_t value, size_t to) { return (value + to - 1) / to * to; }

// Too little to ask the system about.
constexpr uint64_t kLittle = 1 << 20;
Mutex promising;
uint64_t promised SCONCE_GUARDED_BY(promising) = 0;
std::filesystem::path root SCONCE_GUARDED_BY(promising);

}  // namespace

MemoryPromise::MemoryPromise(const char* what, uint64_t bytes) {
  if (bytes < kLittle) return;
  const MutexLock lock(promising);
  const uint64_t left = host_memory(root.native()).left, others = std::min(left, promised);
  SCONCE_CHECK(bytes <= left - others, kOutOfMemory, what, ": cannot allocate ", bytes, " bytes: ", left,
               " are left to the process", others > 0 ? ", some of them to other updates" : "");
  promised += bytes;
  bytes_ = bytes;
}
MemoryPromise::~MemoryPromise() {
  if (bytes_ == 0) return;
  const MutexLock lock(promising);
  promised -= bytes_;
}
void MemoryPromise::look_below(std::filesystem::path below) {
  const MutexLock lock(promising);
  root = std::move(below);
}

size_t WeightMemory::place(size_t bytes, size_t& total) {
  const size_t offset = up(total, bytes >= kLargePiece ? kPage : 64);
  SCONCE_CHECK(bytes < (size_t{1} << 62) && offset < (size_t{1} << 62), kOutOfMemory, "cannot allocate ", bytes,
               " bytes of weights");
  total = offset + bytes;
  return offset;
}

WeightMemory::WeightMemory(size_t total) {
  const bool huge = total >= 2 * kHugePage;
  bytes_ = std::max(up(total, kPage), kPage);
  const size_t mapped = huge ? bytes_ + kHugePage : bytes_;
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SCONCE_CHECK(memory != MAP_FAILED, kOutOfMemory, "cannot allocate ", total, " bytes of weights");
  begin_ = static_cast<std::byte*>(memory);
  if (!huge) return;
  auto* const end = begin_ + mapped;
  auto* const aligned =
      begin_ + (up(reinterpret_cast<uintptr_t>(begin_), kHugePage) - reinterpret_cast<uintptr_t>(begin_));
  if (aligned != begin_) ::munmap(begin_, static_cast<size_t>(aligned - begin_));
  if (aligned + bytes_ != end) ::munmap(aligned + bytes_, static_cast<size_t>(end - aligned - bytes_));
  begin_ = aligned;
  ::madvise(begin_, bytes_, MADV_HUGEPAGE);
}

WeightMemory::~WeightMemory() { ::munmap(begin_, bytes_); }

void WeightMemory::unref() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

StoragePtr WeightMemory::piece(size_t offset, size_t bytes) {
  SCONCE_CHECK(offset <= bytes_ && bytes <= bytes_ - offset, kInternal, "weight memory: piece out of range");
  auto storage = StoragePtr::adopt(new Storage(begin_ + offset, bytes, Device{}, &WeightMemory::give_back, this));
  references_.fetch_add(1, std::memory_order_relaxed);
  return storage;
}

void WeightMemory::give_back(void* data, size_t bytes, void* context) noexcept {
  auto* memory = static_cast<WeightMemory*>(context);
  if (bytes >= kLargePiece && memory->references_.load(std::memory_order_relaxed) > 1)
    ::madvise(data, bytes / kPage * kPage, MADV_DONTNEED);  // starts on a page; the last, partial page stays
  memory->unref();
}

}  // namespace sconce::runner
