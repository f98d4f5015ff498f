#include "src/loader/constant_loading.h"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#include "sconce/check.h"
#include "src/cpu/onednn/mkldnn_weight.h"

namespace sconce::loader {
namespace {

thread_local ConstantLoading* loading = nullptr;

}  // namespace

ConstantLoading::ConstantLoading(const Module& module, ConstantSource& source)
    : module_(module), source_(source), previous_(loading) {
  loading = this;
}
ConstantLoading::~ConstantLoading() {
  loading = previous_;
  while (copies_) delete std::exchange(copies_, copies_->previous);
}

std::span<const std::byte> ConstantLoading::archived(const std::byte* from) const noexcept {
  if (const auto found = module_.archived(from); !found.empty()) return found;
  if (!self_map_ || from < self_map_ || from >= self_map_ + self_map_bytes_) return {};
  const auto offset = static_cast<size_t>(from - self_map_);
  return module_.image().subspan(self_map_offset_ + offset, self_map_bytes_ - offset);
}

const std::byte* ConstantLoading::archived(const std::byte* from, size_t bytes) const noexcept {
  const auto found = archived(from);
  return found.size() >= bytes ? found.data() : nullptr;
}

void* ConstantLoading::copy(void* destination, const void* source, size_t bytes) noexcept {
  if (loading) {
    const std::byte* found = loading->archived(static_cast<const std::byte*>(source), bytes);
    // If no memory is left to record it, make the copy; the constant then counts as untraced.
    if (Copy* copy = found ? new (std::nothrow) Copy{destination, found, bytes, loading->copies_, nullptr} : nullptr) {
      loading->copies_ = copy;
      return destination;
    }
  }
  return std::memcpy(destination, source, bytes);
}

bool ConstantLoading::note_copy(void* to, const void* from, size_t bytes) noexcept {
  const std::byte* found = archived(static_cast<const std::byte*>(from), bytes);
  std::unique_ptr<std::byte[]> own;
  if (!found) {
    own.reset(new (std::nothrow) std::byte[bytes ? bytes : 1]);
    if (!own) return false;
    std::memcpy(own.get(), from, bytes);
  }
  Copy* copy = new (std::nothrow) Copy{to, found, bytes, copies_, std::move(own)};
  if (!copy) return false;
  copies_ = copy;
  return true;
}

void* ConstantLoading::map(void* address, size_t bytes, int protection, int flags, int fd, long offset) noexcept {
  void* mapped = ::mmap(address, bytes, protection, flags, fd, offset);
  if (loading && fd >= 0 && mapped != MAP_FAILED && offset >= 0 &&
      static_cast<uint64_t>(offset) + bytes <= loading->module_.image().size()) {
    loading->self_map_ = static_cast<const std::byte*>(mapped);
    loading->self_map_bytes_ = bytes;
    loading->self_map_offset_ = static_cast<size_t>(offset);
  }
  return mapped;
}

Tensor ConstantLoading::substitute(void* data, Tensor requested) {
  const Device wanted = requested.device();
  const std::byte* stored = nullptr;
  size_t bytes = requested.storage()->bytes();
  const Copy* copy = copies_;
  while (copy && copy->destination != data) copy = copy->previous;  // usually the last one
  if (copy && data) {
    stored = copy->archived ? copy->archived : copy->own.get();
    SCONCE_CHECK(copy->bytes >= bytes, kCorruptPackage, "constant ", given_, ": ", describe(requested), " needs ",
                 bytes, " bytes, the package stores ", copy->bytes);
    bytes = copy->bytes;
  } else if (data) {  // torch 2.6 uses its constants in place
    const auto rest = archived(static_cast<const std::byte*>(data));
    // Only the description has a packed tensor's length: sizes and strides are those of the plain weight.
    if (const auto* description = requested.storage()->opaque_metadata())
      bytes = parse_blocked_weight(*description, rest.size()).bytes();
    if (bytes <= rest.size()) stored = rest.data();
  }
  Tensor packaged = std::move(requested);
  if (stored) {
    auto storage = archived_storage(module_.package(), stored, bytes, Device{});
    if (packaged.storage()->opaque_metadata()) storage->set_opaque_metadata(*packaged.storage()->opaque_metadata());
    packaged = Tensor(std::move(storage), packaged.dtype(), packaged.sizes(), packaged.strides(),
                      packaged.storage_offset(), packaged.layout());
  } else {
    SCONCE_CHECK(!module_.has_holes() || bytes == 0, kInternal, "constant ", given_,
                 " could not be traced to the archive");
  }
  const bool traced = stored && !(copy && copy->own);
  return source_.constant(given_++, packaged, traced, wanted);
}

}  // namespace sconce::loader
