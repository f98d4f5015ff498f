// A container copies its weights into its own blob while it is made, and wraps each constant. ConstantLoading skips
// the copies, records the source of each constant, and returns tensors over the archive mapping instead. Used on the
// thread and in the scope that makes the container.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "src/aoti_abi/constant_scope.h"
#include "src/device/device_backend.h"
#include "src/loader/container.h"

namespace sconce::loader {

class ConstantLoading final : public aoti_abi::ConstantScope, public DeviceLoading {
 public:
  ConstantLoading(const Module& module, ConstantSource& source);
  ~ConstantLoading();
  Tensor substitute(void* data, Tensor requested) override;
  bool note_copy(void* to, const void* from, size_t bytes) noexcept override;
  size_t given() const noexcept { return given_; }

  // Replaces the library's memcpy and mmap on the thread of the scope; other calls pass through.
  static void* copy(void* destination, const void* source, size_t bytes) noexcept;
  static void* map(void* address, size_t bytes, int protection, int flags, int fd, long offset) noexcept;

 private:
  struct Copy {
    const void* destination;
    const std::byte* archived;
    size_t bytes;
    Copy* previous;
    std::unique_ptr<std::byte[]> own;  // the bytes, if they are not the archive's
  };
  // The archive's bytes from this address to the end of the constants or the file; empty if the address is outside.
  std::span<const std::byte> archived(const std::byte* from) const noexcept;
  // As above; null if there are fewer than `bytes`.
  const std::byte* archived(const std::byte* from, size_t bytes) const noexcept;

  const Module& module_;
  ConstantSource& source_;
  Copy* copies_ = nullptr;
  size_t given_ = 0;
  const std::byte* self_map_ = nullptr;  // for a package whose weights follow its code
  size_t self_map_bytes_ = 0, self_map_offset_ = 0;
  ConstantLoading* previous_;
};

}  // namespace sconce::loader
