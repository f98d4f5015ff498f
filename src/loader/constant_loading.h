// What happens while a container is made: it copies its weights into a blob of its own and wraps each constant.
// ConstantLoading leaves the copying out, remembers where each constant would have come from, and answers with tensors
// over the archive mapping instead. Confined to the thread and the scope that makes the container.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/device/device_backend.h"
#include "src/loader/container.h"
#include "src/shim/constant_scope.h"

namespace sconce::loader {

class ConstantLoading final : public shim::ConstantScope, public DeviceLoading {
 public:
  ConstantLoading(const Module& module, ConstantSource& source);
  ~ConstantLoading();
  Tensor substitute(void* data, Tensor requested) override;
  bool note_copy(void* to, const void* from, size_t bytes) noexcept override;
  size_t given() const noexcept { return given_; }

  // In place of the library's memcpy and mmap, for the thread of the scope; others pass through.
  static void* copy(void* destination, const void* source, size_t bytes) noexcept;
  static void* map(void* address, size_t bytes, int protection, int flags, int fd, long offset) noexcept;

 private:
  struct Copy {
    const void* destination;
    const std::byte* archived;
    size_t bytes;
    Copy* previous;
    std::unique_ptr<std::byte[]> own;  // the bytes, where they are none of the archive's
  };
  // The archive's bytes from where these lie to the end of the constants or the file; none if they are none of it.
  std::span<const std::byte> archived(const std::byte* from) const noexcept;
  // The same, null where there are fewer than `bytes`.
  const std::byte* archived(const std::byte* from, size_t bytes) const noexcept;

  const Module& module_;
  ConstantSource& source_;
  Copy* copies_ = nullptr;
  size_t given_ = 0;
  const std::byte* self_map_ = nullptr;  // of a package whose weights follow its code
  size_t self_map_bytes_ = 0, self_map_offset_ = 0;
  ConstantLoading* previous_;
};

}  // namespace sconce::loader
